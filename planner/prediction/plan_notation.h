#pragma once
// Writes plans as tables show them. A shape is stages of a pipeline x pipelines, "4 x 2"; in
// "4 x 3 (2 of 3)" two of the three pipelines have 3 stages. A schedule has suffixes for what
// differs from the schedule's own choice, "interleaved v4 K3 R".

#include <cstddef>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace frazil {

std::string shape_notation(std::size_t stages, std::size_t pipelines);
std::string shape_notation(const Plan& plan);

// How a plan divides its devices, as people count it.
struct ParallelShape {
  std::vector<int> pipeline_devices;  // pp: devices of a pipeline; if they differ, each number once
  int replicas = 1;                   // dp: pipelines on devices of their own
  int chunks = 1;                     // stages on a device, the most of any
  bool shares_stages = false;         // some stage lies on several devices
  bool both_ways = false;             // pipelines run both ways through the same devices
};
ParallelShape parallel_shape(const Plan& plan);
// Returns the most replicas of a layer that a plan has: its pipelines on devices of their own, or
// the devices of a stage that shares them. It is the least bound (SearchOptions::max_replicas)
// under which a search can find the plan.
int count_replicas(const Plan& plan);
// Returns the numbers of devices as "4", or "4/3" if pipelines differ.
std::string pipeline_devices_text(const ParallelShape& shape);

// Returns the schedule's name, "1f1b"; "search" if the lists come from a search over orders, and
// "explicit" if lists are given otherwise.
std::string schedule_notation(const Plan& plan);
// True if the first stage of a plan recomputes; a search makes all stages recompute or none.
bool recomputes(const Plan& plan);

// The suffixes in use, for the legend below a table.
struct Suffixes {
  bool chunks = false;     // v, chunks per device
  bool in_flight = false;  // K, micro-batches in flight
  bool recompute = false;  // R, activation checkpointing
  void add(const Suffixes& others);
};
Suffixes suffixes_of(const NamedSchedule& schedule, bool recompute);
Suffixes suffixes_of(const Plan& plan);

// Returns the schedule's name with its suffixes; a plan with a cached prefix ends with "cached".
std::string variant_notation(const NamedSchedule& schedule, bool recompute);
std::string variant_notation(const Plan& plan);

// Returns one line that says what the suffixes mean; nothing if there are none.
std::string explain_suffixes(const Suffixes& suffixes);

}  // namespace frazil
