#pragma once
// Finds how far a makespan spreads when every task's time varies, by many runs of one graph, each
// with noise of its own (sim/noise.h). Equal seeds give equal draws on every machine.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/event_engine.h"

namespace frazil {

struct Jitter {
  std::uint64_t seed = 0;
  int draws = 200;
  // a in millionths, 0 to 1'000'000: the time of each task is multiplied by a factor drawn evenly
  // from [1 - a, 1 + a] and rounded down to whole ns.
  std::int64_t amplitude_ppm = 100'000;
};

// Nearest-rank percentiles: pX is the smallest makespan that at least X % of all do not exceed.
struct Spread {
  Duration p10{0};
  Duration median{0};
  Duration p90{0};
  friend bool operator==(const Spread&, const Spread&) = default;
};

// Returns the makespan of each draw, in the order of draws. `prices[w]` is the time of work w, as
// run_events() takes it (sim/event_engine.h); each task that does the work varies by itself, delays
// on dependencies do not vary. Throws InfeasibleError on a cycle, a deadlock or starvation.
// Requires: 1 draw or more, an amplitude in its range.
std::vector<Duration> draw_makespans(const EventGraph& graph, std::span<const Duration> prices,
                                     const Jitter& jitter);
// Returns the spread of makespans in any order. Requires: not empty.
Spread find_spread(std::vector<Duration> makespans);

}  // namespace frazil
