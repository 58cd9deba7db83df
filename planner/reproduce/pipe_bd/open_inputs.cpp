#include "planner/reproduce/pipe_bd/open_inputs.h"

namespace frazil {
namespace {

class LoadDependence {
 public:
  LoadDependence(const BlockwiseTask& task, const Dealing& dealing, Duration data_parallel)
      : task_(task), dealing_(dealing), data_parallel_(data_parallel) {}

  double speedup(Duration alone) {
    task_.loader.alone = alone;
    const Duration step = time_layerwise(task_, dealing_, {}).plain;
    return static_cast<double>(data_parallel_.count()) / static_cast<double>(step.count());
  }

  // More loading slows down. Requires: `published` lies between the speed-ups at both ends.
  Duration find(double published, Duration least, Duration most) {
    constexpr int kHalvings = 20;
    for (int i = 0; i < kHalvings; ++i) {
      const Duration middle = (least + most) / 2;
      (speedup(middle) > published ? least : most) = middle;
    }
    return most;
  }

 private:
  BlockwiseTask task_;
  const Dealing& dealing_;
  Duration data_parallel_;
};

}  // namespace

OpenLoad find_open_load(const BlockwiseTask& task, const Dealing& dealing, Duration data_parallel,
                        double published) {
  LoadDependence dependence(task, dealing, data_parallel);
  const Duration alone = task.loader.alone;
  const Duration part = alone / 100;
  OpenLoad open{.simulated = alone, .without = dependence.speedup(kNoTime), .needed = {}};
  open.slope_per_ms =
      (dependence.speedup(alone + part) - dependence.speedup(alone - part)) / to_ms(2 * part);
  const Duration most = 8 * alone;
  if (open.without > published && dependence.speedup(most) <= published) {
    open.needed = dependence.find(published, kNoTime, most);
  }
  return open;
}

}  // namespace frazil
