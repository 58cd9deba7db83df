#pragma once
// What many runs of one thing came to.

#include <string>
#include <vector>

namespace frazil {

struct Spread {
  double median = 0;  // the mean of the middle two of an even number
  double least = 0;
  double most = 0;
};

// Requires at least one value.
Spread find_spread(std::vector<double> values);

struct MeanInterval {
  double mean = 0;
  double deviation = 0;  // of one value, by n - 1; 0 of a single value
  double low = 0;        // of the mean, with 95 % confidence by Student's t
  double high = 0;
};

// Requires at least one value.
MeanInterval find_mean(const std::vector<double>& values);
// Of values[i] - others[i]: two things done to the same cases.
MeanInterval find_paired_difference(const std::vector<double>& values,
                                    const std::vector<double>& others);

// "1.02 (0.98 to 1.05)".
std::string to_range_text(double middle, double low, double high, int decimals);

// Seconds that all threads of this process have computed for since it started.
double cpu_seconds();

}  // namespace frazil
