#include "analysis/ablation/predict/predict_pairs.h"

#include <algorithm>
#include <utility>

#include "analysis/ablation/arm_plans.h"
#include "analysis/ablation/control_masks.h"
#include "profiles/error.h"

namespace frazil {
namespace {

class PairPredictor {
 public:
  PairPredictor(const BaseRun& base, Setting setting, const RecordedMasks& masks)
      : base_(base),
        setting_(setting),
        masks_(masks),
        segments_(find_segments(masks.trace, masks.file)),
        epoch_(std::max<Step>(1, masks.trace.steps / base.epochs)) {}

  PredictedRun predict(Arm arm, std::optional<int> shorter_epochs) const {
    const ArmFacts& facts = facts_of(arm);
    const ModelProfile profile = profile_for(base_, facts.masks, setting_.profile());
    const Setting setting{profile, setting_.cluster()};
    PredictionRules rules;
    rules.search = question_of(base_, profile);
    rules.overhead = find_overhead(masks_.trace);
    rules.store = base_.store;
    rules.store->samples = epoch_ * base_.batch_size;
    std::vector<ForecastSegment> segments =
        make_control_segments(segments_, facts.masks, static_cast<std::uint64_t>(masks_.seed));
    if (shorter_epochs) segments.front().steps = *shorter_epochs * epoch_;
    const ArmPlan first = find_first_plan(facts.first, setting, rules.search, rules.noise_ppm);
    return predict_run(arm, setting, rules, first, segments);
  }

 private:
  const BaseRun& base_;
  Setting setting_;
  const RecordedMasks& masks_;
  std::vector<ForecastSegment> segments_;
  Step epoch_;
};

void refuse_other_blocks(const RecordedMasks& masks, const ModelProfile& profile) {
  if (masks.trace.blocks == profile.blocks) return;
  throw InputError(masks.file, 1, "a trace of other blocks", "those of the profile");
}

}  // namespace

TransitionOverhead find_overhead(const FreezeTrace& trace) {
  TransitionOverhead overhead;
  for (const FreezeEvent& event : trace.events) {
    const auto* const transition = std::get_if<TransitionEvent>(&event.what);
    if (transition == nullptr || !transition->predicted) continue;
    overhead.plan = std::max(overhead.plan, transition->predicted->plan);
    overhead.start = std::max(overhead.start, transition->predicted->start);
  }
  return overhead;
}

PredictedRuns predict_pairs(const BaseRun& base, Setting setting, const RecordedMasks& masks,
                            const std::vector<Arm>& arms, std::optional<int> shorter_epochs) {
  refuse_other_blocks(masks, setting.profile());
  const PairPredictor predictor(base, setting, masks);
  PredictedRuns predicted;
  for (const Arm arm : arms) {
    const bool is_shorter = arm == Arm::kShorter;
    if (is_shorter && !shorter_epochs) continue;
    PredictedRun run = predictor.predict(arm, is_shorter ? shorter_epochs : std::nullopt);
    if (run.fits()) predicted.emplace(arm, std::move(run));
  }
  return predicted;
}

}  // namespace frazil
