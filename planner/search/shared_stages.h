#pragma once
// The part of a search for plans with stages on several devices, which take the micro-batches of
// the one pipeline in turn (PipeDream's replicated stages; Narayanan et al. 2019). They come after
// the plans of shapes, with stages on one device each, and are measured against these. Proposed
// are, for each micro-batch size and with and without recomputing, the cuts and devices of
// planner/search/shared_cuts.h for each number of stages, and PipeDream's own partition. Those
// whose work is below the fastest plan's time are simulated, least work first; then the fastest
// ones move a cut, a device, their depth or their schedule as long as their simulated time falls.
// No bound is claimed for these plans, so the bound of the search does not speak of them.

#include "planner/prediction/ranking.h"
#include "planner/search/evaluate.h"
#include "planner/search/incumbents.h"
#include "planner/search/rejections.h"

namespace frazil {

// More devices are not tried: reductions of so many owners take long to simulate.
inline constexpr int kMostSharingDevices = 64;

// Tries such plans and keeps those that fit, the fastest of each deal of devices. Returns none if
// it may not look: without options.shared_effort, on less than three devices or more than
// kMostSharingDevices, or where options.max_replicas, max_stages or schedules leave no stage on
// several devices.
std::optional<SharedStages> search_shared_stages(Evaluator& evaluator, const SearchOptions& options,
                                                 Incumbents& kept, Rejections& rejected);

}  // namespace frazil
