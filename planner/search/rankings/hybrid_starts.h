#pragma once
// A search of steps ahead starts also from plans of Pipe-BD's automatic hybrid distribution
// (planner/partition/pipe_bd.h), which balances what devices do in a step and leaves out its ramp:
// that is what counts where devices are steps ahead of each other. Here a stage's devices take
// whole micro-batches in turn, where Pipe-BD shares their samples, for shares would change bits. A
// question's other limits hold: its schedules, stages, replicas, and whether devices share stages.

#include <vector>

#include "planner/bounds/search_options.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

// Distributions whose search would take more operations are not looked for.
inline constexpr std::int64_t kMostHybridEffort = 200'000'000;

// Returns, for each size of micro-batches, the best distribution by Pipe-BD's costs whose groups of
// devices divide the micro-batches; nothing for one device, with fewer samples than devices, or
// where none fits the memory by Pipe-BD's rules. Whether a plan fits in truth is not said.
std::vector<Plan> list_hybrid_starts(Setting setting, const SearchOptions& options);

}  // namespace frazil
