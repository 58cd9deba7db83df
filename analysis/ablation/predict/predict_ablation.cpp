#include "analysis/ablation/predict/predict_ablation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/ablation/control_masks.h"
#include "analysis/ablation/predict/compute_limit.h"
#include "planner/freezing/run_shape.h"
#include "planner/trajectory/far_sums.h"
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

// Returns the segments of the first so many steps.
std::vector<ForecastSegment> fit_to(const std::vector<ForecastSegment>& segments, Step steps) {
  std::vector<ForecastSegment> fitting;
  for (const ForecastSegment& segment : segments) {
    if (steps == 0) break;
    fitting.push_back(segment);
    fitting.back().steps = std::min(segment.steps, steps);
    steps -= fitting.back().steps;
  }
  return fitting;
}

// Returns the time of the first steps of a run that caches nothing and holds one plan; steps after
// its end are like its last one.
Duration time_of_steps(const PredictedRun& run, Step steps) {
  Duration sum{0};
  for (std::size_t k = 0; k < run.walk.size(); ++k) {
    const bool is_last = k + 1 == run.walk.size();
    const Step own = is_last ? steps : std::min(steps, run.walk[k].segment.steps);
    sum = add(sum, times(run.times.step_times[k], own));
    steps -= own;
  }
  return sum;
}

// Returns how many steps of such a run are done in that time.
Step count_steps_within(const PredictedRun& run, Duration time) {
  Step done = 0;
  for (std::size_t k = 0;; ++k) {
    const Duration step = run.times.step_times[k];
    const Step steps = run.walk[k].segment.steps;
    if (k + 1 == run.walk.size() || times(step, steps) > time) {
      ENSURE(step > kNoTime, "a step takes some time");
      return done + time / step;
    }
    time -= step * steps;
    done += steps;
  }
}

// Returns the steps of such a run whose time comes nearest to `time`: at least 1, at most all, and
// the larger number of two that are equally near.
Step find_steps(const PredictedRun& run, Duration time, Step all) {
  const Step done = count_steps_within(run, time);
  const Duration rest = time - time_of_steps(run, done);
  const Duration over = time_of_steps(run, done + 1) - time;
  return std::clamp<Step>(rest >= over ? done + 1 : done, 1, all);
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
    return make_control_segments(question_.forecast, find_head(setting_.profile()), facts.masks,
                                 question_.seed);
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
    predicted_.shorter_steps = find_steps(unfrozen, all.total(), predicted_.steps);
    const ArmFacts& facts = facts_of(Arm::kShorter);
    return predict(facts, fit_to(all_segments(facts), *predicted_.shorter_steps));
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
