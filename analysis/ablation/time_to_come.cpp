#include "analysis/ablation/time_to_come.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace frazil {
namespace {

// Returns the mean time of the programs of an arm, or of all arms; none if none has run.
std::optional<Duration> mean_process(const std::vector<PairResult>& finished,
                                     std::optional<Arm> arm) {
  Duration sum{0};
  std::int64_t count = 0;
  for (const PairResult& result : finished) {
    if (arm && result.pair.arm != *arm) continue;
    sum += result.process;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

std::string tell_seconds(Duration time) {
  const std::int64_t seconds = (time.count() + 500'000'000) / 1'000'000'000;
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  if (seconds < kMinute) return fmt::format("{} s", seconds);
  if (seconds < kHour) return fmt::format("{} min {} s", seconds / kMinute, seconds % kMinute);
  return fmt::format("{} h {} min", seconds / kHour, seconds % kHour / kMinute);
}

}  // namespace

TimeToCome estimate_time(const std::vector<ArmSeed>& pending,
                         const std::vector<PairResult>& finished, const PredictedRuns& predicted) {
  TimeToCome estimate;
  const std::optional<Duration> of_any = mean_process(finished, std::nullopt);
  for (const ArmSeed& pair : pending) {
    // The control `shorter` takes the time of `all`, and has no prediction before that has run.
    const bool as_all = pair.arm == Arm::kShorter && predicted.count(pair.arm) == 0;
    const auto prediction = predicted.find(as_all ? Arm::kAll : pair.arm);
    if (const auto of_arm = mean_process(finished, pair.arm)) {
      estimate.time += *of_arm;
    } else if (prediction != predicted.end()) {
      estimate.time += prediction->second.total();
      ++estimate.predicted;
    } else if (of_any) {
      estimate.time += *of_any;
    } else {
      ++estimate.unknown;
    }
  }
  return estimate;
}

std::string tell_time(const TimeToCome& time) {
  if (time.unknown > 0 && time.time.count() == 0) return "the first will show how long they take";
  std::string text = "about " + tell_seconds(time.time);
  if (time.predicted > 0) {
    text += fmt::format(" ({} as predicted, without start and evaluation)", time.predicted);
  }
  if (time.unknown > 0) text += fmt::format(" and {} of unknown length", time.unknown);
  return text;
}

}  // namespace frazil
