#pragma once
// Judges simulated speed-ups against the published ones of the same chart. A method that slows
// down data parallelism where a speed-up was published, or the reverse, has the wrong sign. Two
// methods are in the wrong order if the one that was published as faster is simulated as slower.
// Bar, sign and order must hold with plain times and in the median of the runs whose times vary.
// Equal speed-ups are in any order.
// LS off its bar is answered if some value of the input that it depends on gives what was
// published: its row then counts neither as wrong nor in orders, as rows of our own workloads do.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/reproduce/pipe_bd/pipe_bd_results.h"

namespace frazil {

// The worst that can be said of one method of a chart.
enum class SpeedupVerdict : std::uint8_t {
  kBaseline,     // data parallelism itself
  kFitted,       // a constant was taken from this row
  kWithinBar,    // off by at most the chart's bar
  kOpenInput,    // off by more; the value of an open input that gives the published one is told
  kOwnWorkload,  // no reproduction
  kOffBar,       // off by more, with the right sign and order
  kWrongOrder,
  kWrongSign,
};
// Returns what a row says of itself, such as "within 8 %".
std::string verdict_words(SpeedupVerdict verdict, const SpeedupResult& result);
// True if a row with this verdict counts as not reproduced.
bool is_miss(SpeedupVerdict verdict);

// Returns the speed-up of a method over data parallelism.
double find_speedup(const SpeedupResult& result, std::size_t method);

// Nearest-rank percentiles of the speed-ups of single runs.
struct SpeedupSpread {
  double p10 = 0;
  double median = 0;
  double p90 = 0;
};
// Returns none for a chart whose times do not vary.
std::optional<SpeedupSpread> find_spread(const SpeedupResult& result, std::size_t method);

// Returns a verdict for each method of the chart.
std::vector<SpeedupVerdict> judge_speedups(const SpeedupResult& result);

// Explains each wrong sign, each wrong order and each row off its bar, in one sentence.
std::vector<std::string> explain_misses(const SpeedupResult& result);

// Says on which input LS depends, what it is taken to be, and how the speed-up moves with it, in
// one sentence. Requires: the input was looked at.
std::string explain_open_load(const SpeedupResult& result);

// Says whether the methods of our own workload stand in the published order, in one sentence.
std::string compare_order(const SpeedupResult& result);

}  // namespace frazil
