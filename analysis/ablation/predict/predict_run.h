#pragma once
// Predicts what one arm of an ablation takes, from a profile, a cluster and the masks under which
// it trains. The masks are a forecast, or those that a run recorded: then the prediction stands
// beside the measured time.
// clang-format off
//   one-device, data-parallel,   the first plan, held throughout; the segments are those of a model
//   unfrozen, shorter            that trains wholly
//   freeze                       the first plan, held throughout, nothing cached
//   pipe, pipe-cache,            the cheapest trajectory (planner/trajectory/plan_trajectory.h), as
//   pipe-replicas, all,          `plan --forecast` finds it: without "replicas" among plans with no
//   from-top, random-masks       more replicas than the first plan has, with the store where the
//                                arm caches
//   pipetransformer              its planner's plan under each mask (pipe_transformer_walk.h)
// clang-format on
// An arm that may change plans is free to choose the one that it begins with, as `plan --forecast`
// is.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/ablation/arm.h"
#include "analysis/ablation/arm_plans.h"
#include "analysis/ablation/predict/pipe_transformer_walk.h"
#include "planner/search/rankings/rank_plans.h"
#include "planner/trajectory/walk_times.h"

namespace frazil {

// What all arms of a prediction have in common.
struct PredictionRules {
  // As `plan` reads it from its flags; its mask is not read. First plans are looked for with its
  // efforts, trajectories without.
  SearchOptions search = ranking_options();
  std::int64_t noise_ppm = kNoisePpm;  // of the ranking of first plans
  int plans_per_mask = 3;
  TransitionOverhead overhead = {};
  std::optional<FeatureStore> store = std::nullopt;  // none: no arm caches
  int pipe_transformer_caches_from = kPipeTransformerCachesFrom;
};

// What of a run the prediction of an arm knows.
enum class PredictionBasis : std::uint8_t {
  kForecast,       // nothing: masks and steps are a forecast, or follow from the configuration
  kRecordedMasks,  // under which masks it trained, and its overhead of transitions
  kTimeOfAll,      // of `shorter`: its steps, which follow from the measured times
};
// Returns "configuration", "recorded masks" or "time of all".
std::string_view name_of(PredictionBasis basis);

// The prediction of one arm. Times are those of the whole run.
struct PredictedRun {
  Arm arm = Arm::kUnfrozen;
  std::string reason;             // why there are no times: no plan fits; else empty
  std::vector<HeldSegment> walk;  // empty without times, and so are the times
  WalkTimes times;
  PredictionBasis basis = PredictionBasis::kForecast;

  bool fits() const { return reason.empty(); }
  Duration total() const { return times.parts.total(); }
};

// Predicts an arm. `first` is its first plan (arm_plans.h) while nothing is frozen. An arm that
// changes plans reads at most its number of replicas, and one that adds replicas nothing of it.
// `segments` are the masks under which the arm trains (analysis/ablation/control_masks.h). A plan
// that does not fit is an answer, not an error. Requires: some segment.
PredictedRun predict_run(Arm arm, Setting setting, const PredictionRules& rules,
                         const ArmPlan& first, const std::vector<ForecastSegment>& segments);

}  // namespace frazil
