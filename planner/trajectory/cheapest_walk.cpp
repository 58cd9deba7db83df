#include "planner/trajectory/cheapest_walk.h"

#include <algorithm>
#include <tuple>

#include "planner/trajectory/far_sums.h"
#include "profiles/error.h"

namespace frazil {
namespace {

struct Reached {
  Duration total = kFarAway;
  int changes = 0;
  std::size_t from = 0;
};

Duration change_cost(const TrajectoryCosts& costs, std::size_t segment, std::size_t from,
                     std::size_t to) {
  return from == to ? Duration{0} : costs.change[segment][from][to];
}

std::vector<Reached> begin_anywhere(const TrajectoryCosts& costs) {
  std::vector<Reached> arrivals(costs.states());
  for (std::size_t s = 0; s < arrivals.size(); ++s) {
    const Duration enter = costs.start ? change_cost(costs, 0, *costs.start, s) : Duration{0};
    const bool changes = costs.start && *costs.start != s;
    arrivals[s] = {add(enter, costs.hold[0][s]), changes ? 1 : 0, s};
  }
  return arrivals;
}

std::vector<Reached> advance(const TrajectoryCosts& costs, std::size_t segment,
                             const std::vector<Reached>& before) {
  const std::vector<Duration>& hold = costs.hold[segment];
  std::vector<Reached> after(before.size());
  for (std::size_t from = 0; from < before.size(); ++from) {
    const std::vector<Duration>& change = costs.change[segment][from];
    for (std::size_t to = 0; to < after.size(); ++to) {
      const bool stays = from == to;
      const Duration arrived = add(before[from].total, stays ? Duration{0} : change[to]);
      const Duration total = add(arrived, hold[to]);
      const int changes = before[from].changes + (stays ? 0 : 1);
      Reached& best = after[to];
      const bool better =
          total < best.total || (total == best.total && changes < best.changes) || from == 0;
      if (better) best = {total, changes, from};
    }
  }
  return after;
}

}  // namespace

Duration cost_of(const TrajectoryCosts& costs, const std::vector<std::size_t>& states) {
  ENSURE(states.size() == costs.segments(), "a state for each segment");
  Duration total{0};
  for (std::size_t k = 0; k < states.size(); ++k) {
    if (k > 0) total = add(total, change_cost(costs, k, states[k - 1], states[k]));
    if (k == 0 && costs.start) total = add(total, change_cost(costs, 0, *costs.start, states[0]));
    total = add(total, costs.hold[k][states[k]]);
  }
  return total;
}

std::optional<Trajectory> find_trajectory(const TrajectoryCosts& costs) {
  ENSURE(costs.segments() > 0 && costs.states() > 0, "some segment and some state");
  std::vector<std::vector<Reached>> arrivals{begin_anywhere(costs)};
  for (std::size_t k = 1; k < costs.segments(); ++k) {
    arrivals.push_back(advance(costs, k, arrivals.back()));
  }
  const auto cheapest = std::min_element(
      arrivals.back().begin(), arrivals.back().end(), [](const Reached& a, const Reached& b) {
        return std::tie(a.total, a.changes) < std::tie(b.total, b.changes);
      });
  if (cheapest->total >= kFarAway) return std::nullopt;
  Trajectory trajectory{cheapest->total, std::vector<std::size_t>(costs.segments())};
  auto state = static_cast<std::size_t>(cheapest - arrivals.back().begin());
  for (std::size_t k = costs.segments(); k-- > 0;) {
    trajectory.states[k] = state;
    state = arrivals[k][state].from;
  }
  return trajectory;
}

std::optional<Trajectory> follow_greedily(const TrajectoryCosts& costs) {
  Trajectory trajectory;
  std::optional<std::size_t> held = costs.start;
  for (const std::vector<Duration>& hold : costs.hold) {
    auto next = static_cast<std::size_t>(std::min_element(hold.begin(), hold.end()) - hold.begin());
    if (held && hold[*held] == hold[next]) next = *held;
    trajectory.states.push_back(next);
    held = next;
  }
  trajectory.total = cost_of(costs, trajectory.states);
  if (trajectory.total >= kFarAway) return std::nullopt;
  return trajectory;
}

std::optional<Trajectory> hold_one(const TrajectoryCosts& costs) {
  std::optional<Trajectory> best;
  for (std::size_t s = 0; s < costs.states(); ++s) {
    const std::vector<std::size_t> states(costs.segments(), s);
    const Duration total = cost_of(costs, states);
    if (total < kFarAway && (!best || total < best->total)) best = Trajectory{total, states};
  }
  return best;
}

}  // namespace frazil
