#pragma once
// Judges, from differences and ratios that are paired by seed, what an arm of an ablation gives
// away in accuracy and how much faster it is. Pairs under one seed begin with the same weights and
// see the same samples, so that the spread between seeds cancels in part. Accuracies and margins
// are in points (percentage points). All intervals are Student's t (Student 1908), which assume
// that the differences are about normal; with fewer than two pairs there is none.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace frazil {

// Returns the t of which Student's distribution with so many degrees of freedom has `probability`
// below. Requires: 0 < probability < 1, degrees >= 1.
double student_quantile(double probability, int degrees);

struct MeanBounds {
  double at_least = 0;  // lower one-sided bound at 95 %: mean - t(0.95) s / sqrt(n)
  double low = 0;       // two-sided interval at 95 %: mean -+ t(0.975) s / sqrt(n)
  double high = 0;
};

struct MeanEstimate {
  int pairs = 0;
  double mean = 0;
  double deviation = 0;  // s, with n - 1; 0 for fewer than two pairs
  std::optional<MeanBounds> bounds = std::nullopt;
};

// Returns the mean of paired differences with its bounds. Requires: at least one value.
MeanEstimate estimate_mean(std::span<const double> differences);

struct RatioEstimate {
  int pairs = 0;
  double mean = 1;  // geometric
  // Two-sided interval at 95 %: that of the mean of the logarithms; none for fewer than two pairs.
  struct Interval {
    double low = 1;
    double high = 1;
  };
  std::optional<Interval> interval = std::nullopt;
};

// Returns the geometric mean of ratios with its interval. Requires: at least one, all > 0.
RatioEstimate estimate_ratio(std::span<const double> ratios);

// Tells whether an arm is shown to be as accurate as the arm in which nothing freezes, to within a
// margin.
enum class NonInferiority {
  kNoVerdict,  // fewer than two pairs
  kShown,      // the lower one-sided bound of the difference lies above -margin
  kNotShown,
  kInferior,  // the two-sided interval of the difference lies below -margin
};
std::string_view name_of(NonInferiority verdict);  // "non-inferior"

// Requires: margin > 0.
NonInferiority judge_non_inferiority(const MeanEstimate& difference, double margin);

// True if the two-sided interval of the difference to a control lies above 0; none for fewer than
// two pairs.
std::optional<bool> is_better(const MeanEstimate& difference_to_control);

// What freezing has brought over training for less: the arm `all` against the control that stops as
// soon as that has ended.
enum class FreezingGain {
  kNothing,    // the control is itself non-inferior
  kSomething,  // it is not, and `all` is non-inferior and better than the control
  kNotShown,
};
std::string_view name_of(FreezingGain gain);  // "nothing", "something", "not shown"
FreezingGain judge_gain(NonInferiority control, NonInferiority all, bool beats_control);

// How many seeds an ablation takes after a pilot: n = max(8, ceil(6.18 (s_d / margin)^2)), at most
// 16. With 6.18 = (1.645 + 0.842)^2, an arm that gives nothing away is shown to be non-inferior in
// four of five ablations, by the normal approximation (Chow, Shao & Wang 2008, 3.2).
struct SeedCount {
  int asked = 0;    // by the formula
  int planned = 0;  // of which there are at most 16
};
// Requires: deviation >= 0, margin > 0; both in points.
SeedCount count_seeds(double deviation, double margin);

inline constexpr int kLeastSeeds = 8;
inline constexpr int kMostSeeds = 16;

// Returns the standard error, in points, that an accuracy (0..1) has for being taken on so many
// test samples: 100 sqrt(p (1 - p) / n). Requires: samples >= 1.
double test_error(double accuracy, std::int64_t samples);

}  // namespace frazil
