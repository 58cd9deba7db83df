#pragma once
// Tabulates where the time of steps goes, predicted beside measured.

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/tables/table.h"
#include "analysis/time_split.h"

namespace frazil {

struct PhaseTimes {
  Step first_step = 0;
  TimeSplit predicted;
  std::optional<TimeSplit> measured;
};

// Returns a row for each prediction and each measurement, in ms, with the share of the bubble.
// Parts that are 0 in every row are left out. Requires: at least one phase.
Table tabulate_times(const std::vector<PhaseTimes>& phases);

// Returns a row for each part of one phase: predicted, measured, the difference, and the shares.
Table tabulate_parts(const PhaseTimes& phase);

// Says what the parts are.
std::string_view explain_parts();

}  // namespace frazil
