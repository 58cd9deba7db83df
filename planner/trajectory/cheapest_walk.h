#pragma once
// Finds which state to hold when: the cheapest walk through a row of segments, where holding a
// state through a segment has a cost and so has every change of state between two segments. It is a
// shortest path over (segment, state), exact for any costs >= 0. Costs are constant inside a
// segment, so that moving a change away from the ends of a segment never helps, and only the begins
// of segments need to be looked at.

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct TrajectoryCosts {
  std::vector<std::vector<Duration>> hold;  // [segment][state]
  // Costs of changes, [segment][from][to], at the beginning of the segment; zero from a state
  // to itself.
  std::vector<std::vector<std::vector<Duration>>> change;
  // The state held before the first segment; none: the first state is free to choose.
  std::optional<std::size_t> start = std::nullopt;

  std::size_t segments() const { return hold.size(); }
  std::size_t states() const { return hold.empty() ? 0 : hold.front().size(); }
};

struct Trajectory {
  Duration total{0};
  std::vector<std::size_t> states;  // by segment
  friend bool operator==(const Trajectory&, const Trajectory&) = default;
};

// Returns what a given walk costs; kFarAway if it holds a state or makes a change that cannot be.
// Requires: a state for each segment.
Duration cost_of(const TrajectoryCosts& costs, const std::vector<std::size_t>& states);

// Returns the cheapest walk; of equally cheap walks, the one with the fewest changes, then the
// smallest states, late segments first. None if no walk is possible.
std::optional<Trajectory> find_trajectory(const TrajectoryCosts& costs);

// Returns the walk that holds in each segment the state that is cheapest there, whatever the
// changes cost, as a planner does that asks only for the next plan. Ties go to the state held
// before, else to the smallest. None if that walk is impossible.
std::optional<Trajectory> follow_greedily(const TrajectoryCosts& costs);

// Returns the cheapest walk that holds one state throughout; none if no state can be held through
// all segments.
std::optional<Trajectory> hold_one(const TrajectoryCosts& costs);

}  // namespace frazil
