#include "tests/bench/spread.h"

#include <time.h>

#include <algorithm>

#include "exec/verb_inputs.h"
#include "profiles/error.h"

namespace frazil {

Spread find_spread(std::vector<double> values) {
  ENSURE(!values.empty(), "a spread needs at least one value");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {.median = median, .least = values.front(), .most = values.back()};
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
