#pragma once
// Measured memory beside the simulated, for the tests that need both.

#include <cstdint>
#include <vector>

#include "exec/measuring/memory_account.h"
#include "exec/run/run.h"
#include "planner/plan/plan.h"
#include "sim/memory.h"

namespace frazil {

struct Memories {
  std::vector<MemoryTrace> simulated;    // by device
  std::vector<MeasuredMemory> measured;  // of the second step: moments are there
};

std::int64_t held(const MemoryTrace& simulated, MemoryKind kind);
std::int64_t held(const MeasuredMemory& memory, MemoryKind kind);

// Returns the structure with stashes as the profiler measures them, of one sample up to all of
// `micro_batch`, and with some times.
ModelProfile make_measured_profile(const ModelSpec& model, const OptimizerConfig& optimizer,
                                   const Samples& micro_batch);

// Takes two steps of the plan, the second measured. `steps` are the micro-batches of each; with a
// cached prefix the samples are the same, so that the second step finds what the first has put out.
Memories measure_memories(const ModelSpec& model, const OptimizerConfig& optimizer,
                          const ModelProfile& profile, const Plan& plan, int devices,
                          const std::vector<std::vector<Samples>>& steps);

// Expects parameters, gradients, moments and receive buffers equal to the byte, and the stash equal
// within 2 %.
void expect_equal(const Memories& memories);

}  // namespace frazil
