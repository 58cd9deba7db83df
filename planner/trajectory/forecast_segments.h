#pragma once
// The segments of a forecast: which mask is in force from when to when, and what devices and layers
// take meanwhile. A trace of a run that has watched its costs tells both (traces/freeze_trace.h).

#include <string>
#include <vector>

#include "profiles/cost_scales.h"
#include "profiles/setting.h"
#include "profiles/units.h"
#include "traces/freeze_trace.h"

namespace frazil {

// A span of `steps` steps under one mask and at one set of costs; `step` is the first.
struct ForecastSegment {
  Step step = 0;
  Step steps = 0;
  FreezeMask mask;
  // What devices and layers take beside the cluster and the profile; empty: what these say.
  CostScales scales = {};
  friend bool operator==(const ForecastSegment&, const ForecastSegment&) = default;
};

// Returns the masks of a trace up to its last step: neighbours differ, and each has at least one
// step. All blocks are active until the trace's first mask. Costs are those of the profile
// throughout. Throws InputError{file} if the trace has no steps, or a mask after them.
std::vector<ForecastSegment> find_segments(const FreezeTrace& trace, const std::string& file);

// Returns the segments, those of find_segments(), split where the trace's run has found a drift:
// from that step on devices and layers take what the run had measured by then, whether it
// re-planned or not. That is hindsight. Before the first drift, and after one that brings all back
// to a million, costs are the profile's. A trace without drifts leaves the segments as they are.
// Throws InputError{file} for a drift after the last step, of another number of devices or layers
// than the setting has, or of what takes no time or more than kLargestTimePpm.
std::vector<ForecastSegment> split_at_drifts(std::vector<ForecastSegment> segments,
                                             const FreezeTrace& trace, const std::string& file,
                                             Setting setting);

// Returns one sentence for each change of costs between segments that says from which step on which
// devices and layers take how much longer, and that this is measured.
std::vector<std::string> tell_measured_costs(const std::vector<ForecastSegment>& segments);

}  // namespace frazil
