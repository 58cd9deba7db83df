#include "analysis/ablation/predict/predict_ablation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/ablation/arm_run.h"
#include "analysis/ablation/control_masks.h"
#include "analysis/ablation/predict/compute_limit.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// First plans, each found once.
class FirstPlans {
 public:
  FirstPlans(Setting setting, const PredictionRules& rules, int blocks)
      : setting_(setting), search_(rules.search), noise_ppm_(rules.noise_ppm) {
    search_.mask = FreezeMask::all_active(blocks);
  }

  const ArmPlan& find(ArmFacts::First first) {
    const auto known = plans_.find(first);
    if (known != plans_.end()) return known->second;
    return plans_.emplace(first, find_first_plan(first, setting_, search_, noise_ppm_))
        .first->second;
  }

 private:
  Setting setting_;
  SearchOptions search_;
  std::int64_t noise_ppm_;
  std::map<ArmFacts::First, ArmPlan> plans_;
};

PredictedRun refuse_run(Arm arm, std::string reason) {
  return {.arm = arm, .reason = std::move(reason), .walk = {}, .times = {}};
}

class AblationPredictor {
 public:
  AblationPredictor(Setting setting, const AblationQuestion& question)
      : setting_(setting),
        question_(question),
        first_(setting, question.rules, question.forecast.front().mask.blocks()) {
    const ForecastSegment& last = question.forecast.back();
    predicted_.steps = last.step + last.steps - question.forecast.front().step;
  }

  PredictedAblation predict() {
    for (const ArmFacts& facts : all_arms()) {
      predicted_.runs.push_back(facts.arm == Arm::kShorter ? predict_shorter()
                                                           : predict(facts, all_segments(facts)));
    }
    const PredictionRules& rules = question_.rules;
    predicted_.limit_caches = rules.store.has_value();
    predicted_.compute_limit =
        bound_training(setting_, rules.search, question_.forecast, predicted_.limit_caches);
    return std::move(predicted_);
  }

 private:
  std::vector<ForecastSegment> all_segments(const ArmFacts& facts) const {
    return make_control_segments(question_.forecast, facts.masks, question_.seed);
  }

  PredictedRun predict(const ArmFacts& facts, const std::vector<ForecastSegment>& segments) {
    return predict_run(facts.arm, setting_, question_.rules, first_.find(facts.first), segments);
  }

  // The arms `unfrozen` and `all` stand before this one.
  PredictedRun predict_shorter() {
    const PredictedRun& unfrozen = predicted_.run_of(Arm::kUnfrozen);
    const PredictedRun& all = predicted_.run_of(Arm::kAll);
    for (const PredictedRun* const run : {&unfrozen, &all}) {
      if (!run->fits()) return refuse_run(Arm::kShorter, run->reason);
    }
    predicted_.shorter_steps = shorten(predicted_.steps, unfrozen.total(), all.total()).steps;
    const ArmFacts& facts = facts_of(Arm::kShorter);
    std::vector<ForecastSegment> segments = all_segments(facts);
    segments.front().steps = *predicted_.shorter_steps;
    return predict(facts, segments);
  }

  Setting setting_;
  const AblationQuestion& question_;
  FirstPlans first_;
  PredictedAblation predicted_;
};

}  // namespace

const PredictedRun& PredictedAblation::run_of(Arm arm) const {
  const auto run = std::find_if(runs.begin(), runs.end(),
                                [arm](const PredictedRun& each) { return each.arm == arm; });
  ENSURE(run != runs.end(), "an arm that was predicted");
  return *run;
}

PredictedAblation predict_ablation(Setting setting, const AblationQuestion& question) {
  ENSURE(!question.forecast.empty(), "some segment");
  return AblationPredictor(setting, question).predict();
}

bool is_fastest(const PredictedAblation& ablation, const PredictedRun& run) {
  const auto competes = [](const PredictedRun& each) {
    return each.fits() && !facts_of(each.arm).is_control;
  };
  return competes(run) &&
         std::none_of(ablation.runs.begin(), ablation.runs.end(), [&](const PredictedRun& other) {
           return competes(other) && other.total() < run.total();
         });
}

std::optional<double> find_speed(const PredictedAblation& ablation, const PredictedRun& run) {
  const PredictedRun& unfrozen = ablation.run_of(Arm::kUnfrozen);
  if (!unfrozen.fits() || !run.fits() || run.arm == Arm::kShorter) return std::nullopt;
  if (run.total() == kNoTime) return std::nullopt;
  return static_cast<double>(unfrozen.total().count()) / static_cast<double>(run.total().count());
}

}  // namespace frazil
