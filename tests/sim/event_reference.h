#pragma once
// The event engine's rules are told a second time, as plainly as possible: time goes by one
// nanosecond after another, every lane and every task is looked at each time, and rates are found
// by raising all of them together. The reference is for small graphs.

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "sim/event_engine.h"

namespace frazil {

// An exact fraction of whole numbers.
struct Fraction {
  WideInteger above = 0;
  WideInteger below = 1;

  friend Fraction operator+(const Fraction& a, const Fraction& b);
  friend Fraction operator-(const Fraction& a, const Fraction& b);
  friend Fraction operator/(const Fraction& a, std::int64_t by);
  friend bool operator<(const Fraction& a, const Fraction& b) {
    return a.above * b.below < b.above * a.below;
  }
  friend bool operator==(const Fraction& a, const Fraction& b) {
    return a.above * b.below == b.above * a.below;
  }
};

struct ReferenceFlow {
  std::int64_t most = 1;
  std::vector<ResourceId> resources;
};

// Returns max-min fair rates, by flow.
std::vector<Fraction> fill_with_water(std::span<const std::int64_t> capacities,
                                      std::span<const ReferenceFlow> flows);

// Returns nothing if some tasks never end.
std::optional<std::vector<TaskTimes>> step_through_time(const TaskGraph& graph,
                                                        std::span<const Duration> prices,
                                                        const EventOptions& options);

}  // namespace frazil
