#pragma once
// clang-format off
// Predicts the iteration times of Sailor's measured plans with the simulator. The step is that of
// planner/prediction/simulate_plan.h: 1F1B, a ring all-reduce per stage after its last backward,
// updates as profiled. Two things differ:
//   layers    Times are straight lines over the micro-batch size
//             (planner/reproduce/affine_profile.h), because a row of a small micro-batch times the
//             host that launches kernels, including the profiler's hooks, and not what a training
//             step then shows.
//   messages  Sailor trains with DeepSpeed's pipeline engine, whose sends and receives block both
//             stages while the tensor is on the wire. The simulator's blocking SEND blocks the
//             sender alone, so each SEND is charged for both ends: a stage has as many sends as
//             receives, so the sum is the time for which the stage blocks.
// The model knows nothing that was measured in this plan's training or in that of another plan. Its
// form was chosen with these 15 plans in sight, among 30 uncalibrated forms (rows or lines, the
// sender alone or both ends, bandwidth of one GPU or of a node, one update or one per layer) and 11
// fitted forms (3 to 5 constants, which lists). The errors reported here are therefore a little
// smaller than those to expect for other plans.
// clang-format on

#include <map>
#include <vector>

#include "planner/lowering/lower.h"
#include "planner/plan/plan.h"
#include "profiles/import/sailor_folder.h"
#include "profiles/model_profile.h"
#include "profiles/units.h"

namespace frazil {

// The defaults take everything as measured in isolation: the uncalibrated prediction.
struct SailorConstants {
  double fixed = 1;              // factor on the fixed cost of a layer's call
  double per_sample = 1;         // factor on a layer's cost per sample
  double reduction = 1;          // factor on the measured bandwidth between replicas
  Duration message_overhead{0};  // fixed cost of a message between stages, whatever its size
};

// Lowers the plans of a folder once and prices them for any constants.
class SailorPredictor {
 public:
  explicit SailorPredictor(const SailorFolder& folder);
  SailorPredictor(const SailorPredictor&) = delete;
  SailorPredictor& operator=(const SailorPredictor&) = delete;

  // Returns the simulated time of an iteration of each plan of the folder.
  std::vector<Duration> predict(const SailorConstants& constants) const;
  // Returns for each plan the peak memory of its fullest device, as far as the profile knows
  // (parameters, gradients, moments, stash). What a framework keeps beside these is left out.
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
  std::map<int, ModelProfile> profiles_;  // by tensor-parallel degree
  std::vector<Step> steps_;
  std::vector<Bytes> peak_memory_;
};

}  // namespace frazil
