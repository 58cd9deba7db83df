#pragma once
// Which state to hold when: the cheapest walk through a row of segments, where holding a state
// through a segment costs something and so does every change between two segments. A shortest path
// over (segment, state), exact for any costs >= 0. Inside a segment costs do not change, so moving
// a change away from its ends never helps, and only segments' begins need to be looked at.

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct TrajectoryCosts {
  std::vector<std::vector<Duration>> hold;  // [segment][state]
  // [segment][from][to], at the begin of the segment; zero from a state to itself.
  std::vector<std::vector<std::vector<Duration>>> change;
  // The state before the first segment; none: the first one is free to choose.
  std::optional<std::size_t> start = std::nullopt;

  std::size_t segments() const { return hold.size(); }
  std::size_t states() const { return hold.empty() ? 0 : hold.front().size(); }
};

struct Trajectory {
  Duration total{0};
  std::vector<std::size_t> states;  // by segment
  friend bool operator==(const Trajectory&, const Trajectory&) = default;
};

// What a given walk costs; kFarAway where it holds or makes what cannot be.
Duration cost_of(const TrajectoryCosts& costs, const std::vector<std::size_t>& states);

// The cheapest walk; of equal ones that with the fewest changes, then the smallest states, late
// segments first. None where no walk is possible.
std::optional<Trajectory> find_trajectory(const TrajectoryCosts& costs);

// In each segment the state that is cheapest to hold there, whatever the change costs: what a
// planner does that asks only for the next plan. Ties: the state held before, else the smallest.
std::optional<Trajectory> follow_greedily(const TrajectoryCosts& costs);

// One state throughout, the cheapest such; none where no state can be held through all segments.
std::optional<Trajectory> hold_one(const TrajectoryCosts& costs);

}  // namespace frazil
