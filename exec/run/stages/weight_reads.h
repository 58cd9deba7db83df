#pragma once
// WeightReads chooses which version of its weights each forward of a device is given in a step of a
// plan with weight versions (exec/state/weight_versions.h). It notes what each forward was given
// and tells it with the update that the micro-batch's gradient goes into.

#include <map>
#include <utility>
#include <vector>

#include "exec/run/stages/kept_weights.h"
#include "exec/state/weight_versions.h"
#include "traces/action.h"

namespace frazil {

class WeightReads {
 public:
  // `planned`: by stage, empty without versions; must outlive this object.
  explicit WeightReads(const std::vector<StageVersions>& planned) : planned_(planned) {}

  void begin();
  // Returns the weights that a forward is to read instead of the newest: `before_newest`, or none.
  const OldWeights& choose(const Action& forward, const OldWeights& before_newest) const;
  // Notes that a forward of a stage with these layers reads `given` where that holds a layer, else
  // the newest.
  void note(const Action& forward, const std::vector<LayerRange>& layers, const OldWeights& given);
  // Returns, once a stage has been updated, what the micro-batches of the update had read.
  std::vector<WeightRead> end_group(StageId stage);

 private:
  int newest_of(StageId stage) const;

  const std::vector<StageVersions>& planned_;
  std::map<StageId, int> updates_;
  std::map<std::pair<StageId, MicroBatchId>, int> read_;
};

}  // namespace frazil
