#pragma once
// Summarises the values of many runs: median and range, mean and its interval.

#include <string>
#include <vector>

namespace frazil {

struct Spread {
  double median = 0;  // for an even number, the mean of the middle two
  double least = 0;
  double most = 0;
};

// Requires at least one value.
Spread find_spread(std::vector<double> values);

struct MeanInterval {
  double mean = 0;
  // Standard deviation of one value, by n - 1; 0 for a single value.
  double deviation = 0;
  // [low, high] holds the mean with 95 % confidence by Student's t.
  double low = 0;
  double high = 0;
};

// Requires at least one value.
MeanInterval find_mean(const std::vector<double>& values);
// Returns the mean of values[i] - others[i]: two treatments of the same cases. Requires as many
// values as others.
MeanInterval find_paired_difference(const std::vector<double>& values,
                                    const std::vector<double>& others);

// Writes "1.02 (0.98 to 1.05)".
std::string to_range_text(double middle, double low, double high, int decimals);

// Returns the CPU seconds that all threads of this process have used since it started.
double cpu_seconds();

}  // namespace frazil
