#include "analysis/ablation/verdict.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr double kOneSided = 0.95;
constexpr double kTwoSided = 0.975;
constexpr double kSeedFactor = 6.18;
constexpr double kAllPoints = 100;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(std::span<const double> values, double mean) {
  if (values.size() < 2) return 0;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

double student_quantile(double probability, int degrees) {
  ENSURE(probability > 0 && probability < 1 && degrees >= 1, "a quantile that there is");
  return boost::math::quantile(boost::math::students_t(degrees), probability);
}

MeanEstimate estimate_mean(std::span<const double> differences) {
  ENSURE(!differences.empty(), "a mean of something");
  MeanEstimate estimate;
  estimate.pairs = static_cast<int>(differences.size());
  estimate.mean = mean_of(differences);
  estimate.deviation = deviation_of(differences, estimate.mean);
  if (estimate.pairs < 2) return estimate;
  const double error = estimate.deviation / std::sqrt(estimate.pairs);
  const double one_sided = student_quantile(kOneSided, estimate.pairs - 1) * error;
  const double two_sided = student_quantile(kTwoSided, estimate.pairs - 1) * error;
  estimate.bounds = {.at_least = estimate.mean - one_sided,
                     .low = estimate.mean - two_sided,
                     .high = estimate.mean + two_sided};
  return estimate;
}

RatioEstimate estimate_ratio(std::span<const double> ratios) {
  std::vector<double> logarithms;
  for (const double ratio : ratios) {
    ENSURE(ratio > 0, "a ratio of times");
    logarithms.push_back(std::log(ratio));
  }
  const MeanEstimate estimate = estimate_mean(logarithms);
  RatioEstimate answer{.pairs = estimate.pairs, .mean = std::exp(estimate.mean)};
  if (estimate.bounds) {
    answer.interval = {std::exp(estimate.bounds->low), std::exp(estimate.bounds->high)};
  }
  return answer;
}

std::string_view name_of(NonInferiority verdict) {
  switch (verdict) {
    case NonInferiority::kNoVerdict:
      return "one seed: no verdict";
    case NonInferiority::kShown:
      return "non-inferior";
    case NonInferiority::kNotShown:
      return "not shown to be non-inferior";
    case NonInferiority::kInferior:
      return "inferior by more than the margin";
  }
  ENSURE(false, "unknown verdict");
}

std::string_view name_of(FreezingGain gain) {
  switch (gain) {
    case FreezingGain::kNothing:
      return "nothing";
    case FreezingGain::kSomething:
      return "something";
    case FreezingGain::kNotShown:
      return "not shown";
  }
  ENSURE(false, "unknown gain");
}

FreezingGain judge_gain(NonInferiority control, NonInferiority all, bool beats_control) {
  if (control == NonInferiority::kShown) return FreezingGain::kNothing;
  const bool is_shown = all == NonInferiority::kShown && beats_control;
  return is_shown ? FreezingGain::kSomething : FreezingGain::kNotShown;
}

NonInferiority judge_non_inferiority(const MeanEstimate& difference, double margin) {
  ENSURE(margin > 0, "a margin to give away");
  if (!difference.bounds) return NonInferiority::kNoVerdict;
  if (difference.bounds->at_least > -margin) return NonInferiority::kShown;
  return difference.bounds->high < -margin ? NonInferiority::kInferior : NonInferiority::kNotShown;
}

std::optional<bool> is_better(const MeanEstimate& difference_to_control) {
  if (!difference_to_control.bounds) return std::nullopt;
  return difference_to_control.bounds->low > 0;
}

SeedCount count_seeds(double deviation, double margin) {
  ENSURE(deviation >= 0 && margin > 0, "a spread and a margin");
  // Nobody waits for more, and a spread of a hundred margins must not overflow.
  constexpr double kMostAsked = 1e6;
  const double share = deviation / margin;
  const double asked = std::min(std::ceil(kSeedFactor * share * share), kMostAsked);
  const int seeds = std::max(kLeastSeeds, static_cast<int>(asked));
  return {seeds, std::min(seeds, kMostSeeds)};
}

double test_error(double accuracy, std::int64_t samples) {
  ENSURE(samples >= 1, "an accuracy of samples");
  return kAllPoints * std::sqrt(accuracy * (1 - accuracy) / static_cast<double>(samples));
}

}  // namespace frazil
