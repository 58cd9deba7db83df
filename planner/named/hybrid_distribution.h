#pragma once
// Pipe-BD's automatic hybrid distribution (Jang et al. 2023; its code of July 2023): N devices and
// B blocks, both cut into k consecutive groups; stage s has g_s devices, which share every batch by
// samples, and blocks [c_s, c_{s+1}). Minimises the largest
//   cost(s) = sum over its blocks i of (step[g_s][i] + reduce[g_s][i])
//             + (s > 0 ? relay[c_s - 1] : 0)
// over all C(N+B-2, N-1) plans. It leaves out memory, loading, overlap, the ramp and variance.
//
// Known: the cost, the strict comparison (the first of equal plans wins), and for N = 4 the order
// (1,1,1,1), (4), (3,1), (2,2), (1,3), (2,1,1), (1,2,1), (1,1,2). Chosen: for other N the same
// pattern, one device each first, then by stages and descending; cuts ascending; a memory limit.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct HybridCosts {
  int devices = 1;
  int blocks = 1;
  // By group size g - 1, then block: forward of the teacher, and forward, backward and update of
  // the student, at the batch of one of g devices.
  std::vector<std::vector<Duration>> step;
  std::vector<std::vector<Duration>> reduce;  // likewise: all-reduce of the student's gradients
  std::vector<Duration> relay;                // by block but the last: its output, for a full batch
  // Bytes that each of g devices needs for blocks [first, end); none: without limit.
  std::function<Bytes(int group, int first, int end)> memory;
  Bytes memory_limit;
};

struct HybridPlan {
  std::vector<int> groups;  // devices by stage
  std::vector<int> cuts;    // first block by stage, then B
  Duration cost{0};         // of the dearest stage
  friend bool operator==(const HybridPlan&, const HybridPlan&) = default;
};

Duration hybrid_cost(const HybridCosts& costs, const std::vector<int>& groups,
                     const std::vector<int>& cuts);
bool fits_memory(const HybridCosts& costs, const std::vector<int>& groups,
                 const std::vector<int>& cuts);

// In the order above.
using VisitHybrid =
    std::function<void(const std::vector<int>& groups, const std::vector<int>& cuts)>;
void visit_hybrid_plans(int devices, int blocks, const VisitHybrid& visit);
// C(N+B-2, N-1), or the largest number there is.
std::int64_t count_hybrid_plans(int devices, int blocks);

// The first best plan that fits; none when none does.
std::optional<HybridPlan> search_hybrid_plans(const HybridCosts& costs);
// Those that fit, by cost, then in the order above.
std::vector<HybridPlan> rank_hybrid_plans(const HybridCosts& costs);
// One of the best plans by dynamic programming over (blocks done, devices used): O(B^2 N^2).
std::optional<HybridPlan> find_hybrid_plan(const HybridCosts& costs);

}  // namespace frazil
