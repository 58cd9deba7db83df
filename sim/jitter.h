#pragma once
// How far a makespan spreads when every task's time varies: many runs of one graph, each with noise
// of its own (sim/noise.h). Equal seeds give equal draws on every machine.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/event_engine.h"

namespace frazil {

struct Jitter {
  std::uint64_t seed = 0;
  int draws = 200;
  std::int64_t amplitude_ppm = 100'000;  // each time x (1 - a .. 1 + a), evenly
};

// Nearest rank: the smallest value that at least so many of all do not exceed.
struct Spread {
  Duration p10{0};
  Duration median{0};
  Duration p90{0};
  friend bool operator==(const Spread&, const Spread&) = default;
};

// By draw. Throws as run_events does. Requires: draws of 1 or more.
std::vector<Duration> draw_makespans(const EventGraph& graph, std::span<const Duration> prices,
                                     const Jitter& jitter);
// Requires: not empty.
Spread find_spread(std::vector<Duration> makespans);

}  // namespace frazil
