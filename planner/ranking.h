#pragma once
// Plans beside each other: what the simulator says of each, in order. What does not fit keeps its
// reason.

#include <optional>
#include <string>
#include <vector>

#include "planner/bounds.h"
#include "planner/plan.h"
#include "sim/memory.h"

namespace frazil {

// Why a candidate cannot run.
struct Infeasible {
  std::string reason;  // one sentence
  DeviceId device;
  Bytes needed;
  Bytes available;
};

// The device that misses most memory; none when everything fits.
std::optional<Infeasible> find_overflow(const std::vector<MemoryPeak>& memory,
                                        const Cluster& cluster);
// Throws InfeasibleError where there is one: the device, what it needs and has, and what it holds
// at its peak.
void refuse_overflow(const std::vector<MemoryPeak>& memory, const Cluster& cluster);

struct Candidate {
  Plan plan;  // of an infeasible candidate: the best cut found without memory limits, if any
  Duration makespan{0};
  std::vector<MemoryPeak> memory;
  PlanBounds bounds;
  bool extrapolated = false;
  std::optional<Infeasible> infeasible;
};

// Feasible ones first by (makespan, devices used, stages, summary); then the infeasible ones.
struct Ranking {
  std::vector<Candidate> candidates;
  const Candidate* best() const;  // none when nothing is feasible
};

// Simulated and bounded; infeasible where an interpreter refuses it or a device has too little
// memory.
Candidate judge_plan(Plan plan, const ModelProfile& profile, const Cluster& cluster, bool clip);

void rank(std::vector<Candidate>& candidates);

}  // namespace frazil
