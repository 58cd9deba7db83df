#include "planner/partition/hybrid_distribution.h"

#include <algorithm>
#include <limits>

#include "profiles/error.h"

namespace frazil {
namespace {

Duration stage_cost(const HybridCosts& costs, int group, int first, int end) {
  const auto g = static_cast<std::size_t>(group) - 1;
  Duration cost = first > 0 ? costs.relay.at(static_cast<std::size_t>(first) - 1) : Duration{0};
  for (int block = first; block < end; ++block) {
    const auto b = static_cast<std::size_t>(block);
    cost += costs.step.at(g).at(b) + costs.reduce.at(g).at(b);
  }
  return cost;
}

bool fits_stage(const HybridCosts& costs, int group, int first, int end) {
  return !costs.memory || costs.memory(group, first, end) <= costs.memory_limit;
}

// Visits all ways to write `rest` as a sum of `parts` more parts, larger first parts first.
void visit_groups(int rest, int parts, std::vector<int>& groups,
                  const std::function<void(const std::vector<int>&)>& visit) {
  if (parts == 0) {
    if (rest == 0) visit(groups);
    return;
  }
  for (int part = rest - parts + 1; part >= 1; --part) {
    groups.push_back(part);
    visit_groups(rest - part, parts - 1, groups, visit);
    groups.pop_back();
  }
}

// Visits all ways to cut `blocks` blocks into `parts` more parts, earlier cuts first. `cuts` begins
// with 0.
void visit_cuts(int blocks, int parts, std::vector<int>& cuts,
                const std::function<void(const std::vector<int>&)>& visit) {
  if (parts == 1) {
    cuts.push_back(blocks);
    visit(cuts);
    cuts.pop_back();
    return;
  }
  for (int cut = cuts.back() + 1; cut <= blocks - parts + 1; ++cut) {
    cuts.push_back(cut);
    visit_cuts(blocks, parts - 1, cuts, visit);
    cuts.pop_back();
  }
}

// The best way found to run the first blocks on the first devices: its cost and its last stage.
struct Partial {
  std::optional<Duration> cost;
  int first = 0;
  int group = 0;
};

class HybridTable {
 public:
  explicit HybridTable(const HybridCosts& costs)
      : costs_(costs),
        best_(static_cast<std::size_t>(costs.blocks + 1) *
              static_cast<std::size_t>(costs.devices + 1)) {
    best(0, 0).cost = Duration{0};
    for (int first = 0; first < costs.blocks; ++first) {
      for (int end = first + 1; end <= costs.blocks; ++end) {
        for (int group = 1; group <= costs.devices; ++group) extend(first, end, group);
      }
    }
  }

  std::optional<HybridPlan> plan() {
    const std::optional<Duration> cost = best(costs_.blocks, costs_.devices).cost;
    if (!cost) return std::nullopt;
    HybridPlan plan{{}, {costs_.blocks}, *cost};
    int devices = costs_.devices;
    for (int end = costs_.blocks; end > 0; end = plan.cuts.back()) {
      const Partial& last = best(end, devices);
      plan.groups.push_back(last.group);
      plan.cuts.push_back(last.first);
      devices -= last.group;
    }
    std::reverse(plan.groups.begin(), plan.groups.end());
    std::reverse(plan.cuts.begin(), plan.cuts.end());
    return plan;
  }

 private:
  Partial& best(int blocks, int devices) {
    return best_[static_cast<std::size_t>(blocks) * static_cast<std::size_t>(costs_.devices + 1) +
                 static_cast<std::size_t>(devices)];
  }

  // Appends a stage to the best ways to run the blocks before `first`. `first` ascends over the
  // calls, so these ways are final.
  void extend(int first, int end, int group) {
    if (!fits_stage(costs_, group, first, end)) return;
    const Duration own = stage_cost(costs_, group, first, end);
    for (int used = 0; used + group <= costs_.devices; ++used) {
      const std::optional<Duration> before = best(first, used).cost;
      if (!before) continue;
      const Duration cost = std::max(*before, own);
      Partial& known = best(end, used + group);
      if (!known.cost || cost < *known.cost) known = {cost, first, group};
    }
  }

  const HybridCosts& costs_;
  std::vector<Partial> best_;
};

void check(const HybridCosts& costs) {
  const auto devices = static_cast<std::size_t>(costs.devices);
  const auto blocks = static_cast<std::size_t>(costs.blocks);
  ENSURE(costs.devices >= 1 && costs.blocks >= 1, "a device and a block");
  ENSURE(costs.step.size() == devices && costs.reduce.size() == devices,
         "times for groups of one device up to all");
  ENSURE(costs.relay.size() + 1 == blocks, "a relay between any two blocks");
}

}  // namespace

Duration hybrid_cost(const HybridCosts& costs, const std::vector<int>& groups,
                     const std::vector<int>& cuts) {
  Duration dearest{0};
  for (std::size_t s = 0; s < groups.size(); ++s) {
    dearest = std::max(dearest, stage_cost(costs, groups[s], cuts[s], cuts[s + 1]));
  }
  return dearest;
}

bool fits_memory(const HybridCosts& costs, const std::vector<int>& groups,
                 const std::vector<int>& cuts) {
  for (std::size_t s = 0; s < groups.size(); ++s) {
    if (!fits_stage(costs, groups[s], cuts[s], cuts[s + 1])) return false;
  }
  return true;
}

void visit_hybrid_plans(int devices, int blocks, const VisitHybrid& visit) {
  const auto visit_all_cuts = [&](const std::vector<int>& groups) {
    std::vector<int> cuts{0};
    visit_cuts(blocks, static_cast<int>(groups.size()), cuts,
               [&](const std::vector<int>& found) { visit(groups, found); });
  };
  std::vector<int> groups;
  if (devices <= blocks) visit_groups(devices, devices, groups, visit_all_cuts);
  for (int stages = 1; stages <= std::min(devices - 1, blocks); ++stages) {
    visit_groups(devices, stages, groups, visit_all_cuts);
  }
}

std::int64_t count_hybrid_plans(int devices, int blocks) {
  // C(N+B-2, N-1): after each factor the quotient is a binomial coefficient again.
  std::int64_t count = 1;
  const int chosen = std::min(devices, blocks) - 1;
  for (int i = 1; i <= chosen; ++i) {
    const std::int64_t factor = devices + blocks - 2 - chosen + i;
    if (__builtin_mul_overflow(count, factor, &count)) {
      return std::numeric_limits<std::int64_t>::max();
    }
    count /= i;
  }
  return count;
}

std::optional<HybridPlan> search_hybrid_plans(const HybridCosts& costs) {
  check(costs);
  std::optional<HybridPlan> best;
  visit_hybrid_plans(costs.devices, costs.blocks,
                     [&](const std::vector<int>& groups, const std::vector<int>& cuts) {
                       if (!fits_memory(costs, groups, cuts)) return;
                       const Duration cost = hybrid_cost(costs, groups, cuts);
                       if (!best || cost < best->cost) best = {groups, cuts, cost};
                     });
  return best;
}

std::vector<HybridPlan> rank_hybrid_plans(const HybridCosts& costs) {
  check(costs);
  std::vector<HybridPlan> plans;
  visit_hybrid_plans(costs.devices, costs.blocks,
                     [&](const std::vector<int>& groups, const std::vector<int>& cuts) {
                       if (!fits_memory(costs, groups, cuts)) return;
                       plans.push_back({groups, cuts, hybrid_cost(costs, groups, cuts)});
                     });
  std::stable_sort(plans.begin(), plans.end(),
                   [](const HybridPlan& a, const HybridPlan& b) { return a.cost < b.cost; });
  return plans;
}

std::optional<HybridPlan> find_hybrid_plan(const HybridCosts& costs) {
  check(costs);
  return HybridTable(costs).plan();
}

}  // namespace frazil
