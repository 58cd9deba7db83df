#pragma once
// Judges simulated speed-ups against the published ones of the same chart. A method that slows
// down data parallelism where a speed-up was published, or the reverse, has the wrong sign. Two
// methods are in the wrong order if the one that was published as faster is simulated as slower,
// with plain times or with varied ones. Equal speed-ups are in any order.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/reproduce/pipe_bd_results.h"

namespace frazil {

// The worst that can be said of one method of a chart.
enum class SpeedupVerdict : std::uint8_t {
  kNotSimulated,
  kBaseline,  // data parallelism itself
  kClose,     // off by at most kCloseError
  kFar,       // off by more, with the right sign and order
  kWrongOrder,
  kWrongSign,
};
inline constexpr double kCloseError = 0.1;
std::string_view verdict_words(SpeedupVerdict verdict);

// Returns the speed-up of a method over data parallelism. Requires: both are simulated.
double find_speedup(const SpeedupResult& result, std::size_t method, Duration StepTimes::*time);

// Returns a verdict for each method of the chart.
std::vector<SpeedupVerdict> judge_speedups(const SpeedupResult& result);

// Explains each wrong sign and each wrong order of a chart in one sentence.
std::vector<std::string> explain_wrong_speedups(const SpeedupResult& result);

}  // namespace frazil
