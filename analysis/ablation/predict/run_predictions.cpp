#include "analysis/ablation/predict/run_predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/ablation/control_origin.h"
#include "analysis/ablation/train_program.h"
#include "profiles/error.h"

namespace frazil {
namespace {

Setting setting_of(const AblationRequest& request) { return {request.profile, request.cluster}; }

std::optional<RunLength> find_length(const AblationRequest& request,
                                     const std::vector<PairResult>& results) {
  if (request.samples) return length_of(request.base, *request.samples);
  for (const PairResult& result : results) {
    if (result.pair.arm != Arm::kShorter) return length_of(request.base, result);
  }
  return std::nullopt;
}

MaskCourse foresee(const AblationRequest& request, const RunLength& length, std::int64_t seed) {
  return foresee_course(request.base, request.profile, length, seed);
}

MaskCourse course_of(const AblationRequest& request, const PairResult& result) {
  return record_course(request.base, result, files_of(request.out, result.pair).result().string());
}

// Lists the results of the arms that follow the policy, by seed and then in the order of the arms.
std::vector<const PairResult*> list_followers(const AblationRequest& request,
                                              const std::vector<PairResult>& results) {
  std::vector<const PairResult*> followers;
  for (const std::int64_t seed : request.seeds) {
    for (const Arm arm : request.arms) {
      const PairResult* const result = find_result(results, {arm, seed});
      if (result == nullptr || facts_of(arm).masks != ArmFacts::Masks::kPolicy) continue;
      followers.push_back(result);
    }
  }
  return followers;
}

// Returns the steps that arm `shorter` has had in the mean over the seeds.
std::optional<Step> find_shorter_steps(const std::vector<PairResult>& results) {
  Step sum = 0;
  Step runs = 0;
  for (const PairResult& result : results) {
    if (result.pair.arm != Arm::kShorter) continue;
    sum += result.steps;
    ++runs;
  }
  if (runs == 0) return std::nullopt;
  return (sum + runs / 2) / runs;
}

}  // namespace

std::optional<MaskCourse> find_course(const AblationRequest& request,
                                      const std::vector<PairResult>& results) {
  const std::optional<RunLength> length = find_length(request, results);
  if (!length) return std::nullopt;
  MaskCourse course = foresee(request, *length, request.seeds.front());
  if (course.source == MaskCourse::Source::kForeseen) return course;
  const std::vector<const PairResult*> followers = list_followers(request, results);
  return followers.empty() ? course : course_of(request, *followers.front());
}

PredictedRuns predict_runs(const AblationRequest& request, const AblationRuns& runs,
                           const MaskCourse& course) {
  std::vector<Arm> arms;
  for (const Arm arm : request.arms) {
    const auto known = runs.predicted.find(arm);
    const bool stays =
        known != runs.predicted.end() && known->second.basis == PredictionBasis::kForecast;
    if (!stays && runs.unfit.count(arm) == 0) arms.push_back(arm);
  }
  PredictedRuns predicted = predict_pairs(request.base, setting_of(request), course, arms,
                                          find_shorter_steps(runs.results));
  PredictedRuns before = runs.predicted;
  predicted.merge(before);
  return predicted;
}

std::optional<ComputeLimit> find_limit(const AblationRequest& request, const AblationRuns& runs,
                                       const MaskCourse& course) {
  const auto has = [&](const auto& property) {
    return std::any_of(request.arms.begin(), request.arms.end(),
                       [&](Arm arm) { return property(facts_of(arm)); });
  };
  const bool freezes =
      has([](const ArmFacts& arm) { return arm.masks == ArmFacts::Masks::kPolicy; });
  if (!freezes || course.source == MaskCourse::Source::kLength) return std::nullopt;
  const bool caches = has([](const ArmFacts& arm) { return arm.caches; });
  ComputeLimit limit{
      .time = bound_training(setting_of(request), question_of(request.base, request.profile),
                             course.segments, caches),
      .devices = static_cast<std::int64_t>(request.cluster.devices.size()),
      .caches = caches};
  const auto unfrozen = runs.predicted.find(Arm::kUnfrozen);
  if (unfrozen != runs.predicted.end()) limit.unfrozen = unfrozen->second.total();
  return limit;
}

std::string find_other_masks(const AblationRequest& request,
                             const std::vector<PairResult>& results) {
  const std::optional<RunLength> length = find_length(request, results);
  if (!length) return "";
  std::optional<MaskCourse> foreseen;
  for (const PairResult* const result : list_followers(request, results)) {
    const std::int64_t seed = result->pair.seed;
    if (!foreseen || foreseen->seed != seed) foreseen = foresee(request, *length, seed);
    if (foreseen->source != MaskCourse::Source::kForeseen) return "";
    if (course_of(request, *result).segments == foreseen->segments) continue;
    return fmt::format("{} with seed {}", facts_of(result->pair.arm).name, seed);
  }
  return "";
}

void refuse_other_length(const AblationRequest& request, const PairResult& result) {
  if (!request.samples || result.pair.arm == Arm::kShorter) return;
  const RunLength length = length_of(request.base, *request.samples);
  const Step expected = request.base.epochs * length.steps_per_epoch;
  if (result.steps == expected) return;
  throw InputError("--samples", 0,
                   fmt::format("{}, with which a run has {} steps", *request.samples, expected),
                   fmt::format("the samples of an epoch: {} with seed {} has {} steps",
                               facts_of(result.pair.arm).name, result.pair.seed, result.steps));
}

}  // namespace frazil
