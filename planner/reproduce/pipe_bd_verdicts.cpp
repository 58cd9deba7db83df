#include "planner/reproduce/pipe_bd_verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kMethods = kBlockwiseMethods.size();
constexpr std::array kTimes = {&StepTimes::plain, &StepTimes::varied};

double published(const SpeedupResult& result, std::size_t method) {
  return result.published.thousandths[method] / 1000.0;
}

// Only simulated methods can be wrong.
bool has_wrong_sign(const SpeedupResult& result, std::size_t method) {
  return std::any_of(kTimes.begin(), kTimes.end(), [&](Duration StepTimes::*time) {
    return (published(result, method) - 1) * (find_speedup(result, method, time) - 1) < 0;
  });
}

// Tells whether `faster`, published as the faster one, is simulated as the slower one.
bool is_wrong_order(const SpeedupResult& result, std::size_t faster, std::size_t slower) {
  if (!result.steps[faster] || !result.steps[slower]) return false;
  if (published(result, faster) <= published(result, slower)) return false;
  return std::any_of(kTimes.begin(), kTimes.end(), [&](Duration StepTimes::*time) {
    return (*result.steps[faster]).*time > (*result.steps[slower]).*time;
  });
}

SpeedupVerdict judge(const SpeedupResult& result, std::size_t method) {
  if (!result.steps[method]) return SpeedupVerdict::kNotSimulated;
  if (method == 0) return SpeedupVerdict::kBaseline;
  if (has_wrong_sign(result, method)) return SpeedupVerdict::kWrongSign;
  // The order to data parallelism is the sign.
  for (std::size_t other = 1; other < kMethods; ++other) {
    if (is_wrong_order(result, method, other) || is_wrong_order(result, other, method)) {
      return SpeedupVerdict::kWrongOrder;
    }
  }
  const bool is_close = std::all_of(kTimes.begin(), kTimes.end(), [&](Duration StepTimes::*time) {
    const double error = find_speedup(result, method, time) / published(result, method) - 1;
    return std::abs(error) <= kCloseError;
  });
  return is_close ? SpeedupVerdict::kClose : SpeedupVerdict::kFar;
}

// Says what the simulation lacks that decides this method. Layerwise scheduling loads the whole
// batch on each device, data parallelism a share of it.
std::string_view find_cause(std::size_t method) {
  switch (kBlockwiseMethods[method]) {
    case BlockwiseMethod::kLs:
      return "each device loads the whole batch, and what loaders take on this dataset when they "
             "compete is not published and not simulated";
    case BlockwiseMethod::kDp:
    case BlockwiseMethod::kTr:
    case BlockwiseMethod::kTrDpu:
    case BlockwiseMethod::kAhd:
      return "all-reduces, relays and competing loaders are not published and not simulated";
  }
  fail_ensure(__FILE__, __LINE__, "an unknown method");
}

}  // namespace

std::string_view verdict_words(SpeedupVerdict verdict) {
  switch (verdict) {
    case SpeedupVerdict::kNotSimulated:
      return "not simulated";
    case SpeedupVerdict::kBaseline:
      return "baseline";
    case SpeedupVerdict::kClose:
      return "within 10 %";
    case SpeedupVerdict::kFar:
      return "off by over 10 %";
    case SpeedupVerdict::kWrongOrder:
      return "WRONG ORDER";
    case SpeedupVerdict::kWrongSign:
      return "WRONG SIGN";
  }
  fail_ensure(__FILE__, __LINE__, "an unknown verdict");
}

double find_speedup(const SpeedupResult& result, std::size_t method, Duration StepTimes::*time) {
  return static_cast<double>(((*result.steps.front()).*time).count()) /
         static_cast<double>(((*result.steps[method]).*time).count());
}

std::vector<SpeedupVerdict> judge_speedups(const SpeedupResult& result) {
  std::vector<SpeedupVerdict> verdicts;
  for (std::size_t method = 0; method < kMethods; ++method) {
    verdicts.push_back(judge(result, method));
  }
  return verdicts;
}

std::vector<std::string> explain_wrong_speedups(const SpeedupResult& result) {
  std::vector<std::string> sentences;
  const std::string where =
      fmt::format("for {} on {}", result.published.task, result.published.dataset);
  for (std::size_t method = 1; method < kMethods; ++method) {
    if (!result.steps[method]) continue;
    const std::string_view name = method_name(kBlockwiseMethods[method]);
    if (has_wrong_sign(result, method)) {
      const double simulated = find_speedup(result, method, &StepTimes::plain);
      sentences.push_back(
          fmt::format("{} {} is a {} ({:.3f}) where a {} ({:.3f}) was published: {}", name, where,
                      simulated > 1 ? "speed-up" : "slow-down", simulated,
                      published(result, method) > 1 ? "speed-up" : "slow-down",
                      published(result, method), find_cause(method)));
    }
    for (std::size_t other = 1; other < kMethods; ++other) {
      if (!is_wrong_order(result, method, other)) continue;
      sentences.push_back(fmt::format("{} {} is slower than {}, and was published as faster: {}",
                                      name, where, method_name(kBlockwiseMethods[other]),
                                      find_cause(method)));
    }
  }
  return sentences;
}

}  // namespace frazil
