#include "analysis/ablation/predict/predict_pairs.h"

#include <fmt/format.h>

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
        epoch_(std::max<Step>(1, masks.steps / base.epochs)) {}

  PredictedRun predict(Arm arm, std::optional<Step> shorter_steps) const {
    const ArmFacts& facts = facts_of(arm);
    const ModelProfile profile = profile_for(base_, facts.masks, setting_.profile());
    const Setting setting{profile, setting_.cluster()};
    PredictionRules rules;
    rules.search = question_of(base_, profile);
    rules.overhead = masks_.overhead;
    rules.store = base_.store;
    rules.store->samples = epoch_ * base_.batch_size;
    std::vector<ForecastSegment> segments = make_control_segments(
        masks_.segments, facts.masks, static_cast<std::uint64_t>(masks_.seed));
    if (shorter_steps) segments.front().steps = *shorter_steps;
    const ArmPlan first = find_first_plan(facts.first, setting, rules.search, rules.noise_ppm);
    return predict_run(arm, setting, rules, first, segments);
  }

 private:
  const BaseRun& base_;
  Setting setting_;
  const RecordedMasks& masks_;
  Step epoch_;
};

void refuse_other_blocks(const RecordedMasks& masks, const ModelProfile& profile) {
  const std::size_t blocks = masks.segments.front().mask.text().size();
  if (blocks == profile.blocks.size()) return;
  throw InputError(masks.file, 0, fmt::format("masks of {} blocks", blocks),
                   fmt::format("those of the profile, of {}", profile.blocks.size()));
}

}  // namespace

RecordedMasks record_masks(const PairResult& result, const std::string& file) {
  RecordedMasks masks{.segments = {},
                      .steps = result.steps,
                      .overhead = result.overhead,
                      .file = file,
                      .seed = result.pair.seed};
  for (const PairPhase& phase : result.phases) {
    const FreezeMask mask = FreezeMask::parse(phase.mask, file, 0);
    if (!masks.segments.empty() && masks.segments.back().mask == mask) continue;
    masks.segments.push_back({phase.first_step, 0, mask});
  }
  for (std::size_t k = 0; k < masks.segments.size(); ++k) {
    const bool is_last = k + 1 == masks.segments.size();
    const Step end = is_last ? result.steps : masks.segments[k + 1].step;
    masks.segments[k].steps = end - masks.segments[k].step;
  }
  return masks;
}

PredictedRuns predict_pairs(const BaseRun& base, Setting setting, const RecordedMasks& masks,
                            const std::vector<Arm>& arms, std::optional<Step> shorter_steps) {
  refuse_other_blocks(masks, setting.profile());
  const PairPredictor predictor(base, setting, masks);
  PredictedRuns predicted;
  for (const Arm arm : arms) {
    const bool is_shorter = arm == Arm::kShorter;
    if (is_shorter && !shorter_steps) continue;
    PredictedRun run = predictor.predict(arm, is_shorter ? shorter_steps : std::nullopt);
    if (run.fits()) predicted.emplace(arm, std::move(run));
  }
  return predicted;
}

}  // namespace frazil
