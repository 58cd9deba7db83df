#include "tests/bench/support/spread.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "exec/measuring/fixed.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Returns Student's t that is exceeded with a probability of 2.5 %, by degrees of freedom from 1.
// Beyond the table it returns the last entry, which makes intervals wider.
double find_t(std::size_t degrees) {
  constexpr std::array<double, 30> kQuantiles{
      12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
      2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
      2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return degrees == 0 ? 0 : kQuantiles.at(std::min(degrees, kQuantiles.size()) - 1);
}

}  // namespace

Spread find_spread(std::vector<double> values) {
  ENSURE(!values.empty(), "a spread needs at least one value");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {.median = median, .least = values.front(), .most = values.back()};
}

MeanInterval find_mean(const std::vector<double>& values) {
  ENSURE(!values.empty(), "a mean needs at least one value");
  const auto count = static_cast<double>(values.size());
  MeanInterval found;
  for (const double value : values) found.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - found.mean) * (value - found.mean);
  if (values.size() > 1) found.deviation = std::sqrt(squares / (count - 1));
  const double half = find_t(values.size() - 1) * found.deviation / std::sqrt(count);
  found.low = found.mean - half;
  found.high = found.mean + half;
  return found;
}

MeanInterval find_paired_difference(const std::vector<double>& values,
                                    const std::vector<double>& others) {
  ENSURE(values.size() == others.size(), "two values for each case");
  std::vector<double> differences;
  for (std::size_t i = 0; i < values.size(); ++i) differences.push_back(values[i] - others[i]);
  return find_mean(differences);
}

std::string to_range_text(double middle, double low, double high, int decimals) {
  return fixed(middle, decimals) + " (" + fixed(low, decimals) + " to " + fixed(high, decimals) +
         ")";
}

double cpu_seconds() {
  timespec time{};
  ENSURE(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0, "a process knows its CPU time");
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace frazil
