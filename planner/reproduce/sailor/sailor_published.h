#pragma once
// What Sailor's own simulator says of the 15 plans of OPT-350M that came with Sailor, and whether a
// folder holds just these plans. For other plans or times nobody ran it.

#include <optional>

#include "profiles/import/sailor_folder.h"

namespace frazil {

// A summary of |predicted / measured - 1|. Of two middle values the upper is the median.
struct ErrorSummary {
  double mean = 0;
  double median = 0;
  double largest = 0;
};

// Returns the errors of Sailor's own simulator on the plans of the folder, run from Sailor's
// artifact; none unless model, GPU, layer times, and shapes and measured times of all plans are
// those that came with Sailor.
std::optional<ErrorSummary> find_sailors_own(const SailorFolder& folder);

}  // namespace frazil
