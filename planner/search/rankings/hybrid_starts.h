#pragma once
// The plans of Pipe-BD's automatic hybrid distribution (planner/partition/pipe_bd.h) as a search of
// this question may take them: of its sizes of micro-batches, whole ones of which the devices of a
// stage take in turn, for to share their samples would change bits, and no layer's statistics allow
// it. Pipe-BD's own search looks at single steps without the ramp, which is what counts where
// devices are steps ahead of each other.

#include <vector>

#include "planner/bounds/search_options.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

// Above so many devices times units the distribution is not looked for: finding it takes the
// square.
inline constexpr int kMostHybridCells = 4'096;

// Returns the best distribution that fits the memory by its own rules, once for each size that
// gives every stage's devices equally many micro-batches; nothing with fewer samples than devices,
// or where none fits. Whether a plan fits in truth is not said.
std::vector<Plan> list_hybrid_starts(Setting setting, const SearchOptions& options);

}  // namespace frazil
