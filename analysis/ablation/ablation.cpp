#include "analysis/ablation/ablation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr double kPoints = 100;

double to_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// Calls visit(of arm, of other) for each seed that both have.
void for_each_pair(const std::vector<PairResult>& results, Arm arm, Arm other,
                   const std::function<void(const PairResult&, const PairResult&)>& visit) {
  for (const PairResult* const own : results_of(results, arm)) {
    for (const PairResult* const base : results_of(results, other)) {
      if (own->pair.seed == base->pair.seed) visit(*own, *base);
    }
  }
}

double mean_over(const std::vector<const PairResult*>& results,
                 const std::function<double(const PairResult&)>& value) {
  double sum = 0;
  for (const PairResult* const result : results) sum += value(*result);
  return sum / static_cast<double>(results.size());
}

std::optional<MeanEstimate> compare_accuracy(const std::vector<PairResult>& results, Arm arm,
                                             Arm other) {
  std::vector<double> differences;
  for_each_pair(results, arm, other, [&](const PairResult& own, const PairResult& base) {
    differences.push_back(kPoints * (own.accuracy - base.accuracy));
  });
  if (differences.empty()) return std::nullopt;
  return estimate_mean(differences);
}

std::optional<RatioEstimate> compare_times(const std::vector<PairResult>& results, Arm arm,
                                           Duration PairResult::*time) {
  std::vector<double> ratios;
  for_each_pair(results, arm, Arm::kUnfrozen, [&](const PairResult& own, const PairResult& base) {
    if ((own.*time).count() == 0 || (base.*time).count() == 0) return;
    ratios.push_back(to_seconds(base.*time) / to_seconds(own.*time));
  });
  if (ratios.empty()) return std::nullopt;
  return estimate_ratio(ratios);
}

bool ends_as_all(const std::vector<PairResult>& results, const ArmRow& row) {
  std::size_t equal = 0;
  for_each_pair(results, row.arm, Arm::kAll, [&](const PairResult& own, const PairResult& all) {
    equal += own.state_hash == all.state_hash ? 1 : 0;
  });
  return row.arm != Arm::kAll && equal == row.seeds.size();
}

void add_means(const std::vector<const PairResult*>& own, ArmRow& row) {
  for (const PairResult* const result : own) {
    row.seeds.push_back(result->pair.seed);
    if (is_disturbed(*result)) row.disturbed.push_back(result->pair.seed);
  }
  const auto mean = [&](const auto& value) { return mean_over(own, value); };
  row.wall_seconds = mean([](const PairResult& r) { return to_seconds(r.wall); });
  row.device_seconds = mean([](const PairResult& r) { return to_seconds(r.device); });
  row.cluster_seconds = mean([](const PairResult& r) { return to_seconds(r.cluster); });
  row.accuracy_percent = mean([](const PairResult& r) { return kPoints * r.accuracy; });
  row.epochs = mean([](const PairResult& r) { return static_cast<double>(r.epochs); });
  row.transitions = mean([](const PairResult& r) { return static_cast<double>(r.transitions); });
  row.transition_seconds = mean([](const PairResult& r) { return to_seconds(r.transition_time); });
}

// Returns by how many percent an arm took more time than `all`, in the mean over the seeds that
// both have.
std::optional<double> find_more_time(const std::vector<PairResult>& results, Arm arm) {
  double sum = 0;
  int pairs = 0;
  for_each_pair(results, arm, Arm::kAll, [&](const PairResult& own, const PairResult& all) {
    sum += kPoints * (to_seconds(own.wall) / to_seconds(all.wall) - 1);
    ++pairs;
  });
  if (pairs == 0) return std::nullopt;
  return sum / pairs;
}

void add_prediction(const PredictedRuns& predicted, ArmRow& row) {
  const auto own = predicted.find(row.arm);
  if (own == predicted.end()) return;
  row.predicted = own->second;
  if (row.arm == Arm::kShorter) return;  // whose steps follow from what was measured
  const double seconds = to_seconds(own->second.total());
  if (row.has_run() && row.wall_seconds > 0) {
    row.prediction_error_percent = kPoints * (seconds - row.wall_seconds) / row.wall_seconds;
  }
  const auto base = predicted.find(Arm::kUnfrozen);
  if (base != predicted.end() && seconds > 0) {
    row.predicted_speed = to_seconds(base->second.total()) / seconds;
  }
}

void add_comparisons(const std::vector<PairResult>& results, double margin, ArmRow& row) {
  if (row.arm == Arm::kShorter) row.more_time_percent = find_more_time(results, row.arm);
  row.has_weights_of_all = ends_as_all(results, row);
  if (row.arm == Arm::kUnfrozen) return;
  row.speed = compare_times(results, row.arm, &PairResult::wall);
  row.device_saving = compare_times(results, row.arm, &PairResult::device);
  row.difference = compare_accuracy(results, row.arm, Arm::kUnfrozen);
  if (row.difference) row.verdict = judge_non_inferiority(*row.difference, margin);
  if (row.arm != Arm::kAll) return;
  row.over_shorter = compare_accuracy(results, row.arm, Arm::kShorter);
  if (row.over_shorter) row.beats_shorter = is_better(*row.over_shorter);
}

std::optional<FreezingGain> find_gain(const std::vector<ArmRow>& rows) {
  const ArmRow* all = nullptr;
  const ArmRow* control = nullptr;
  for (const ArmRow& row : rows) {
    if (row.verdict == NonInferiority::kNoVerdict) continue;
    if (row.arm == Arm::kAll) all = &row;
    if (row.arm == Arm::kShorter) control = &row;
  }
  if (all == nullptr || control == nullptr) return std::nullopt;
  return judge_gain(control->verdict, all->verdict, all->beats_shorter.value_or(false));
}

}  // namespace

std::vector<const PairResult*> results_of(const std::vector<PairResult>& results, Arm arm) {
  std::vector<const PairResult*> found;
  for (const PairResult& result : results) {
    if (result.pair.arm == arm) found.push_back(&result);
  }
  return found;
}

Ablation sum_up(const AblationRequest& request, AblationRuns runs, double margin_points,
                std::optional<SeedCount> asked_seeds) {
  Ablation ablation;
  ablation.margin_points = margin_points;
  ablation.seeds = request.seeds;
  ablation.asked_seeds = asked_seeds;
  ablation.results = std::move(runs.results);
  for (const ArmFacts& facts : all_arms()) {
    if (std::find(request.arms.begin(), request.arms.end(), facts.arm) == request.arms.end()) {
      continue;
    }
    ArmRow row;
    row.arm = facts.arm;
    const std::vector<const PairResult*> own = results_of(ablation.results, facts.arm);
    if (const auto unfit = runs.unfit.find(facts.arm); unfit != runs.unfit.end()) {
      row.unfit = unfit->second;
    } else if (!own.empty()) {
      add_means(own, row);
      add_comparisons(ablation.results, margin_points, row);
    }
    add_prediction(runs.predicted, row);
    if (row.arm == Arm::kUnfrozen && row.has_run()) {
      ablation.test_samples = own.front()->test_samples;
      ablation.test_error_points =
          test_error(row.accuracy_percent / kPoints, own.front()->test_samples);
    }
    ablation.rows.push_back(std::move(row));
  }
  ablation.gain = find_gain(ablation.rows);
  ablation.order = compare_order(ablation.results, runs.predicted);
  ablation.limit = runs.limit;
  ablation.other_masks = runs.other_masks;
  ablation.samples_were_told = request.samples.has_value();
  return ablation;
}

std::string tell_points(double points) {
  return fmt::format("{} {}", points, points == 1 ? "point" : "points");
}

}  // namespace frazil
