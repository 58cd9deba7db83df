#pragma once
// The reduction tail (planner/bounds/reduction_tail.h) of groups that run one way, each device
// alone with its layers, over links that are all alike. Groups of a class then end their reductions
// and updates together, so one group of each class is followed: in time that does not grow with the
// number of groups.

#include <optional>
#include <vector>

#include "planner/bounds/proposal.h"
#include "planner/bounds/space_sums.h"
#include "profiles/setting.h"

namespace frazil {

// Returns what ReductionTail::makespan() does; none for other groups, for parameters that are tied
// and for links that are listed or have classes. `last_work`: by class of the proposal, then by
// device of its groups, when the device ends its last work. `barrier`: as ReductionTail takes it.
// Requires: every group has micro-batches.
std::optional<Duration> find_alike_makespan(
    const Shape& shape, const Proposal& proposal,
    const std::vector<const std::vector<Duration>*>& last_work, Setting setting,
    const DeviceGroupClasses& device_classes, const SpaceSums& sums, const SearchOptions& options,
    std::optional<Duration> barrier);

}  // namespace frazil
