#pragma once
// What a search for the best plan may choose from, and when it may end.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/model_profile.h"
#include "profiles/units.h"
#include "traces/freeze_mask.h"

namespace frazil {

// The plan that is being executed, and what a transition to another plan takes. If there is one,
// plans are ranked by steps x makespan + transition time, and the held plan is a candidate if it
// fits.
struct HeldPlan {
  Plan plan;
  std::int64_t steps = 1;                                // to come
  std::function<Duration(const Plan&)> transition_time;  // >= 0; zero to the held plan itself
};
// Returns steps x makespan, but at most half of kNever, so that a transition time can be added.
constexpr Duration time_of_steps(Duration makespan, std::int64_t steps) {
  const Duration most = kNever / 2;
  return makespan > most / steps ? most : makespan * steps;
}

struct SearchOptions {
  int batch_size = 1;
  // A run in mode exact has to keep its micro-batch size, for the bits depend on it: it offers that
  // size alone.
  std::vector<int> micro_batch_sizes;
  std::vector<ScheduleKind> schedules = {ScheduleKind::kGpipe,
                                         ScheduleKind::kOneForwardOneBackward};
  FreezeMask mask;  // which blocks train
  ReductionMode reduction = ReductionMode::kExact;
  // None: reductions run after the backwards.
  std::optional<ReductionOverlap> overlap = std::nullopt;
  bool clip = false;     // by the global gradient norm: a barrier before all updates
  int max_stages = 0;    // of a pipeline, chunks counted; 0: any number
  int max_replicas = 0;  // 0: as many as fit; a schedule that runs both ways counts as one
  // The search also tries pipelines of unequal length side by side, other numbers of chunks per
  // device and of micro-batches in flight than a schedule's own, and several orders of devices that
  // differ. If false, devices are taken as they are listed.
  bool joint = false;
  bool recompute = false;  // also plans whose stages all recompute
  // The search also takes plans that cache the frozen prefix in the first stage, if at least one
  // layer is left for each later stage. Reading the cached activations is taken to cost nothing. No
  // plan is added if layer 0 is not frozen.
  bool cache = false;
  // Each shape is also tried with cuts chosen as if messages ran beside work, besides those chosen
  // as if messages stopped it (planner/search/propose.h).
  bool overlapped_cuts = true;
  int keep = 2;  // how many of the best plans to find; 0: all are simulated and ranked
  // Once the search has timed and simulated so many actions, it goes on for the best plan alone;
  // the others are then the best of those that it has looked at.
  std::int64_t runner_up_effort = std::numeric_limits<std::int64_t>::max();
  // The search ends once it has cut this many shapes (planner/bounds/shape.h) into stages and some
  // plan is known to fit; the ranking then tells what was not looked at. 0: it ends when the answer
  // is proven.
  std::int64_t effort = 0;
  // The optimality gap: the search ends when `keep` plans are found and the best is proven to be
  // within gap_ppm / 10^6 of the optimum; the other plans are the best of those looked at.
  std::int64_t gap_ppm = 0;
  // Cuts are chosen as min-max partitions (planner/search/propose.h). With an effort the search
  // then looks for faster ones by simulated time (planner/search/cut_search.h), until the plans it
  // times had so many actions; the answer then tells what no plan of the space takes less than,
  // whatever its cuts. 0: cuts stay as they were chosen. Must be 0 if `keep` is 0.
  std::int64_t cut_effort = 0;
  // With an effort the search also tries plans with stages on several devices
  // (planner/search/shared_stages.h), until those it simulates had about so many actions.
  std::int64_t shared_effort = 0;
  // Of a model with several losses, rank_plans() also tries plans whose devices may be so many
  // steps ahead of each other (planner/search/rankings/windows.h). 0: devices wait after each
  // step.
  int steps_ahead = 0;
  std::optional<HeldPlan> held = std::nullopt;  // must be empty if `keep` is 0
};

// The cut effort where someone waits for the answer, about a tenth of a second, and where someone
// waits for a proof, for some cuts are never proven.
inline constexpr std::int64_t kCutEffort = 4'000'000;
inline constexpr std::int64_t kPatientCutEffort = 100 * kCutEffort;
// Where someone waits for the answer: the effort for stages on several devices, how many of the
// best plans are kept, each with cuts of its own, and the effort for those below the best.
inline constexpr std::int64_t kSharedEffort = 100'000;
inline constexpr int kKeptPlans = 32;
inline constexpr std::int64_t kRunnerUpEffort = 5'000'000;

// Returns the powers of two up to `batch_size` between the smallest and the largest size that all
// layers were measured at; if there is none, the smallest such size, or `batch_size` if that is
// less.
std::vector<int> measured_sizes(const ModelProfile& profile, int batch_size);

}  // namespace frazil
