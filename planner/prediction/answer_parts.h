#pragma once
// What answers about one plan and about many have in common.

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/plan/plan.h"
#include "planner/prediction/bounds.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"
#include "sim/memory.h"

namespace frazil {

inline constexpr const char* kCacheNote =
    "note: reading what is cached of frozen layers is taken to need no time\n";

double samples_per_second(const Plan& plan, Duration makespan);

// How far a time lies above its lower bound; and as a text.
double gap(Duration time, Duration bound);
std::string percent(double share);

// Which bytes an imported trace could not tell, by the rules that its profile notes down.
std::string unknown_bytes(const ModelProfile& profile);

// "parameters 1.50 MiB, stash 3.00 MiB": what a device holds at its peak.
std::string list_held(const MemoryPeak& peak);

// "1 plan", "2 plans".
std::string count_of(std::int64_t number, std::string_view noun);

// Notes, a line each, on what the numbers rest on that was not measured.
std::string list_flags(const ModelProfile& profile, bool extrapolated);
// A note where the cluster gives links no bandwidth, so that what they carry takes no time; of one
// device none.
std::string list_free_links(const Cluster& cluster);

// JSON objects, to be made part of others.
std::string bounds_json(const PlanBounds& bounds);
std::string memory_json(const MemoryPeak& peak, const Device& device);

}  // namespace frazil
