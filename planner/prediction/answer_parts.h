#pragma once
// Parts of text and JSON that answers about one plan and about many plans have in common.

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

// Returns the optimality gap: how far a time lies above its lower bound, as a share of the bound; 0
// if the bound is 0.
double gap(Duration time, Duration bound);
std::string percent(double share);  // 0.0123 is "1.23 %"

// Names the bytes that an imported trace does not tell, by its profile's doubts or, in older files,
// by the rules noted down, as "memory and messages"; returns nothing if all bytes are known.
std::string unknown_bytes(const ModelProfile& profile);

// Lists what a device holds at its peak: "parameters 1.50 MiB, stash 3.00 MiB".
std::string list_held(const MemoryPeak& peak);

// Returns "1 plan", "2 plans".
std::string count_of(std::int64_t number, std::string_view noun);

// Returns notes, a line each, on inputs of the numbers that were not measured.
std::string list_flags(const ModelProfile& profile, bool extrapolated);
// Returns a note if links of the cluster have no bandwidth, so that bytes take no time over them;
// nothing otherwise, and nothing for a cluster of one device.
std::string list_free_links(const Cluster& cluster);

// Return JSON objects, to be made part of larger JSON answers.
std::string bounds_json(const PlanBounds& bounds);
std::string memory_json(const MemoryPeak& peak, const Device& device);

}  // namespace frazil
