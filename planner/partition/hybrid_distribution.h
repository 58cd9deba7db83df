#pragma once
// Pipe-BD's automatic hybrid distribution (Jang et al. 2023; its code of July 2023) cuts N devices
// and B blocks into k consecutive parts each. Stage s has g_s devices, which share every batch by
// samples, and blocks [c_s, c_{s+1}). The search minimises the largest
//   cost(s) = sum over blocks i of stage s of (step[g_s][i] + reduce[g_s][i])
//             + (s > 0 ? relay[c_s - 1] : 0)
// over all C(N+B-2, N-1) plans. It leaves out memory, loading, overlap, the ramp and variance.
//
// Known from the released code: the cost, the strict comparison (the first of equal plans wins),
// and for N = 4 the order (1,1,1,1), (4), (3,1), (2,2), (1,3), (2,1,1), (1,2,1), (1,1,2) of the
// g_s. Chosen here: other N follow the same pattern, with one device per stage first, then by
// number of stages and descending g_s; cuts ascend; a memory limit can be set.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct HybridCosts {
  int devices = 1;
  int blocks = 1;
  // Indexed by group size g - 1, then block: time of the teacher's forward and of the student's
  // forward, backward and update, for the share of the batch that one of g devices has.
  std::vector<std::vector<Duration>> step;
  // Indexed by group size g - 1, then block: time of the all-reduce of the student's gradients.
  std::vector<std::vector<Duration>> reduce;
  // Indexed by block, without the last: time to send the block's output of a full batch.
  std::vector<Duration> relay;
  // Returns the bytes that each of `group` devices needs for blocks [first, end). Without this
  // function there is no memory limit.
  std::function<Bytes(int group, int first, int end)> memory;
  Bytes memory_limit;
};

struct HybridPlan {
  std::vector<int> groups;  // devices by stage
  std::vector<int> cuts;    // first block by stage, then B
  Duration cost{0};         // of the most expensive stage
  friend bool operator==(const HybridPlan&, const HybridPlan&) = default;
};

// Returns the cost of the most expensive stage.
Duration hybrid_cost(const HybridCosts& costs, const std::vector<int>& groups,
                     const std::vector<int>& cuts);
bool fits_memory(const HybridCosts& costs, const std::vector<int>& groups,
                 const std::vector<int>& cuts);

using VisitHybrid =
    std::function<void(const std::vector<int>& groups, const std::vector<int>& cuts)>;
// Visits all plans in the order at the top of this file.
void visit_hybrid_plans(int devices, int blocks, const VisitHybrid& visit);
// Returns C(N+B-2, N-1), or the largest 64-bit number where that would overflow.
std::int64_t count_hybrid_plans(int devices, int blocks);

// Returns the first of the best plans that fit the memory, in visiting order; none when no plan
// fits.
std::optional<HybridPlan> search_hybrid_plans(const HybridCosts& costs);
// Returns all plans that fit the memory, by cost and then in visiting order.
std::vector<HybridPlan> rank_hybrid_plans(const HybridCosts& costs);
// Finds one of the best plans that fit, by dynamic programming over (blocks done, devices used), in
// O(B^2 N^2); none when no plan fits.
std::optional<HybridPlan> find_hybrid_plan(const HybridCosts& costs);

}  // namespace frazil
