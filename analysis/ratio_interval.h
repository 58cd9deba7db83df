#pragma once
// Estimates a ratio measured in blocks, with an interval over the blocks and the verdict it allows.
// A block pairs what is compared inside one short stretch of time, so that drift of the machine
// cancels; the interval is a seeded percentile bootstrap over blocks (Kalibera & Jones 2013; Efron
// 1979).

#include <cstdint>
#include <string_view>
#include <vector>

namespace frazil {

struct RatioInterval {
  double median = 1;  // of the blocks' ratios
  double low = 1;     // at level 0.95: 2.5 and 97.5 percentiles of the bootstrapped median
  double high = 1;
  int blocks = 0;
};

// Returns the interval of the median ratio. `level`: two-sided confidence. Requires: at least one
// ratio, all > 0.
RatioInterval bootstrap_ratio(const std::vector<double>& ratios, std::uint64_t seed,
                              double level = 0.95, int resamples = 2000);

enum class Verdict { kPass, kFail, kInconclusive };
std::string_view verdict_name(Verdict verdict);

// Returns PASS if the whole interval lies within [1/(1+bar), 1+bar], FAIL if all of it lies
// outside, else INCONCLUSIVE (never PASS).
Verdict judge(const RatioInterval& interval, double bar);

// Returns the mean of the lowest 90 % of the samples: short spikes of a shared machine are cut
// equally on both sides of a comparison, and unlike medians, means of parts add up to the mean of
// the whole. ceil(keep x n) samples are kept, so that fewer than ten lose none.
double trimmed_mean(std::vector<double> samples, double keep = 0.9);

}  // namespace frazil
