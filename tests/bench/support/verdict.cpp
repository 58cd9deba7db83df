#include "tests/bench/support/verdict.h"

#include "exec/measuring/fixed.h"

namespace frazil {

std::string verdict_at_most(double low, double high, double bar) {
  if (high <= bar) return "met";
  return low > bar ? "missed" : "undecided";
}

std::string verdict_at_least(double low, double high, double bar) {
  if (low >= bar) return "met";
  return high < bar ? "missed" : "undecided";
}

std::string to_load_text(const std::optional<double>& cores) {
  return "other programs kept " + (cores ? fixed(*cores, 2) : "an unknown number of") +
         " cores busy";
}

}  // namespace frazil
