#pragma once
// Predicts every arm of an ablation over one forecast of freezing: the simulated twin of the real
// runs of `frazil ablate`.

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/ablation/predict/predict_run.h"

namespace frazil {

struct AblationQuestion {
  std::vector<ForecastSegment> forecast;  // the masks of the policy
  std::uint64_t seed = 1;                 // of the masks that are drawn
  PredictionRules rules;
};

struct PredictedAblation {
  std::vector<PredictedRun> runs;                    // of all arms, in their order
  Step steps = 0;                                    // of the forecast
  std::optional<Step> shorter_steps = std::nullopt;  // of arm `shorter`; none: it has no times
  // What no plan takes less than under the policy's masks (compute_limit.h), the frozen prefix
  // cached if there is a store.
  Duration compute_limit{0};
  bool limit_caches = false;

  const PredictedRun& run_of(Arm arm) const;
};

// Predicts all arms. Arm `shorter` trains the steps whose time under the unfrozen plan is nearest
// to the time of `all`; it has a reason in place of times where one of the two has no times.
// Requires: some segment.
PredictedAblation predict_ablation(Setting setting, const AblationQuestion& question);

// True if no arm takes less time than this one, controls left out; so it is of two that take as
// long, and of no arm without times.
bool is_fastest(const PredictedAblation& ablation, const PredictedRun& run);

// Returns the time of arm `unfrozen` / the time of this arm; none if either has none, or for arm
// `shorter`, which does less work.
std::optional<double> find_speed(const PredictedAblation& ablation, const PredictedRun& run);

}  // namespace frazil
