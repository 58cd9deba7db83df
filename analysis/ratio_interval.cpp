#include "analysis/ratio_interval.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "profiles/error.h"

namespace frazil {
namespace {

// Returns the median, the mean of the two middle values if their number is even. Reorders `values`.
double take_median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

// Standard distributions differ between libraries, and equal input must give equal bytes: the top
// 32 bits times n, shifted down, is the same everywhere; its bias is below n / 2^32.
std::size_t draw_index(std::mt19937_64& random, std::size_t n) {
  return static_cast<std::size_t>(((random() >> 32U) * n) >> 32U);
}

}  // namespace

RatioInterval bootstrap_ratio(const std::vector<double>& ratios, std::uint64_t seed, double level,
                              int resamples) {
  ENSURE(!ratios.empty(), "a ratio interval needs at least one block");
  ENSURE(ratios.size() <= 0xffffffffU, "more blocks than an index draw can reach");
  ENSURE(level > 0 && level < 1 && resamples > 0, "level lies in (0, 1), resamples above 0");
  for (const double ratio : ratios) {
    ENSURE(ratio > 0 && std::isfinite(ratio), "ratios of blocks are finite and above 0");
  }
  std::mt19937_64 random(seed);
  std::vector<double> medians(static_cast<std::size_t>(resamples));
  std::vector<double> drawn(ratios.size());
  for (double& median : medians) {
    for (double& value : drawn) value = ratios[draw_index(random, ratios.size())];
    median = take_median(drawn);
  }
  std::sort(medians.begin(), medians.end());
  // The same number of medians is left out on either side.
  const auto outside =
      std::min(static_cast<std::size_t>((1 - level) / 2 * resamples), (medians.size() - 1) / 2);
  std::vector<double> all = ratios;
  return {.median = take_median(all),
          .low = medians[outside],
          .high = medians[medians.size() - 1 - outside],
          .blocks = static_cast<int>(ratios.size())};
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kInconclusive:
      return "INCONCLUSIVE";
  }
  return "INCONCLUSIVE";
}

Verdict judge(const RatioInterval& interval, double bar) {
  ENSURE(bar >= 0, "a bar is not negative");
  const double least = 1 / (1 + bar);
  const double most = 1 + bar;
  if (interval.low >= least && interval.high <= most) return Verdict::kPass;
  if (interval.high < least || interval.low > most) return Verdict::kFail;
  return Verdict::kInconclusive;
}

double trimmed_mean(std::vector<double> samples, double keep) {
  ENSURE(!samples.empty(), "a mean needs at least one sample");
  ENSURE(keep > 0 && keep <= 1, "the kept share lies in (0, 1]");
  std::sort(samples.begin(), samples.end());
  // The small amount taken off keeps 0.9 x 10 at 9 whatever way the product was rounded.
  const double wanted = std::ceil(keep * static_cast<double>(samples.size()) - 1e-9);
  const auto kept = std::clamp<std::size_t>(static_cast<std::size_t>(wanted), 1, samples.size());
  const double sum =
      std::accumulate(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(kept), 0.0);
  return sum / static_cast<double>(kept);
}

}  // namespace frazil
