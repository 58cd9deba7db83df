#include "analysis/ablation/predict/predict_pairs.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "analysis/ablation/arm_plans.h"
#include "analysis/ablation/control_masks.h"
#include "planner/freezing/run_shape.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// How long an arm trains that never freezes is in the configuration.
PredictionBasis basis_of(Arm arm, const MaskCourse& course) {
  if (arm == Arm::kShorter) return PredictionBasis::kTimeOfAll;
  const bool reads_record = course.source == MaskCourse::Source::kRecorded &&
                            facts_of(arm).masks != ArmFacts::Masks::kNone;
  return reads_record ? PredictionBasis::kRecordedMasks : PredictionBasis::kForecast;
}

bool is_known(Arm arm, const MaskCourse& course, const std::optional<Step>& shorter_steps) {
  if (arm == Arm::kShorter) return shorter_steps.has_value();
  return course.source != MaskCourse::Source::kLength ||
         facts_of(arm).masks == ArmFacts::Masks::kNone;
}

class PairPredictor {
 public:
  PairPredictor(const BaseRun& base, Setting setting, const MaskCourse& course)
      : base_(base), setting_(setting), course_(course) {}

  PredictedRun predict(Arm arm, std::optional<Step> shorter_steps) const {
    const ArmFacts& facts = facts_of(arm);
    const ModelProfile profile = profile_for(base_, facts.masks, setting_.profile());
    const Setting setting{profile, setting_.cluster()};
    PredictionRules rules;
    rules.search = question_of(base_, profile);
    rules.overhead = course_.overhead;
    rules.store = base_.store;
    rules.store->samples = course_.samples;
    std::vector<ForecastSegment> segments =
        make_control_segments(course_.segments, find_head(profile), facts.masks,
                              static_cast<std::uint64_t>(course_.seed));
    if (shorter_steps) segments.front().steps = *shorter_steps;
    const ArmPlan first = find_first_plan(facts.first, setting, rules.search, rules.noise_ppm);
    PredictedRun run = predict_run(arm, setting, rules, first, segments);
    run.basis = basis_of(arm, course_);
    return run;
  }

 private:
  const BaseRun& base_;
  Setting setting_;
  const MaskCourse& course_;
};

void refuse_other_blocks(const MaskCourse& course, const ModelProfile& profile) {
  const std::size_t blocks = course.segments.front().mask.text().size();
  if (blocks == profile.blocks.size()) return;
  throw InputError(course.file, 0, fmt::format("masks of {} blocks", blocks),
                   fmt::format("those of the profile, of {}", profile.blocks.size()));
}

}  // namespace

PredictedRuns predict_pairs(const BaseRun& base, Setting setting, const MaskCourse& course,
                            const std::vector<Arm>& arms, std::optional<Step> shorter_steps) {
  refuse_other_blocks(course, setting.profile());
  const PairPredictor predictor(base, setting, course);
  PredictedRuns predicted;
  for (const Arm arm : arms) {
    if (!is_known(arm, course, shorter_steps)) continue;
    PredictedRun run = predictor.predict(arm, arm == Arm::kShorter ? shorter_steps : std::nullopt);
    if (run.fits()) predicted.emplace(arm, std::move(run));
  }
  return predicted;
}

std::string tell_predicted(const PredictedRuns& predicted, PredictionBasis basis) {
  const auto seconds = [](const PredictedRun& run) {
    return std::chrono::duration<double>(run.total()).count();
  };
  const auto base = predicted.find(Arm::kUnfrozen);
  std::string told;
  for (const auto& [arm, run] : predicted) {
    if (run.basis != basis) continue;
    told +=
        fmt::format("{}{} {:.2f} s", told.empty() ? "" : ", ", facts_of(arm).name, seconds(run));
    if (base == predicted.end() || arm == Arm::kUnfrozen || run.total().count() == 0) continue;
    told += fmt::format(" ({:.2f}x)", seconds(base->second) / seconds(run));
  }
  return told;
}

}  // namespace frazil
