#include "sim/jitter.h"

#include <algorithm>

#include "profiles/error.h"

namespace frazil {

std::vector<Duration> draw_makespans(const EventGraph& graph, std::span<const Duration> prices,
                                     const Jitter& jitter) {
  ENSURE(jitter.draws > 0, "a number of draws");
  std::vector<Duration> makespans;
  makespans.reserve(static_cast<std::size_t>(jitter.draws));
  EventTimes times;
  for (int draw = 0; draw < jitter.draws; ++draw) {
    run_events(graph, prices, times,
               {.seed = jitter.seed,
                .draw = static_cast<std::uint32_t>(draw),
                .amplitude_ppm = jitter.amplitude_ppm});
    makespans.push_back(latest_end(times));
  }
  return makespans;
}

Spread find_spread(std::vector<Duration> makespans) {
  ENSURE(!makespans.empty(), "a spread of something");
  std::sort(makespans.begin(), makespans.end());
  const auto at = [&](std::size_t percent) {
    return makespans[divide_up(makespans.size() * percent, std::size_t{100}) - 1];
  };
  return {.p10 = at(10), .median = at(50), .p90 = at(90)};
}

}  // namespace frazil
