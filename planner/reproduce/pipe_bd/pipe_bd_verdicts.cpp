#include "planner/reproduce/pipe_bd/pipe_bd_verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kMethods = kBlockwiseMethods.size();
constexpr auto kLayerwise = static_cast<std::size_t>(BlockwiseMethod::kLs);

double published(const SpeedupResult& result, std::size_t method) {
  return result.published.thousandths[method] / 1000.0;
}

// Lists the simulated speed-ups of which each must be within the bar, with the right sign and
// order: the plain one, and the median of the runs.
std::vector<double> list_speedups(const SpeedupResult& result, std::size_t method) {
  std::vector<double> speedups = {find_speedup(result, method)};
  if (const auto spread = find_spread(result, method)) speedups.push_back(spread->median);
  return speedups;
}

bool is_within(const SpeedupResult& result, std::size_t method) {
  const std::vector<double> speedups = list_speedups(result, method);
  return std::all_of(speedups.begin(), speedups.end(), [&](double speedup) {
    return std::abs(speedup / published(result, method) - 1) <= *result.bar;
  });
}

// True if the row is judged; a row is not whose open input could give what was published.
bool is_answerable(const SpeedupResult& result, std::size_t method) {
  if (!result.bar) return false;
  return method != kLayerwise || !result.open_load || !result.open_load->needed ||
         is_within(result, method);
}

bool has_wrong_sign(const SpeedupResult& result, std::size_t method) {
  const std::vector<double> speedups = list_speedups(result, method);
  return std::any_of(speedups.begin(), speedups.end(), [&](double speedup) {
    return (published(result, method) - 1) * (speedup - 1) < 0;
  });
}

// True if `faster`, published as the faster one, is simulated as the slower one.
bool is_wrong_order(const SpeedupResult& result, std::size_t faster, std::size_t slower) {
  if (!is_answerable(result, faster) || !is_answerable(result, slower)) return false;
  if (published(result, faster) <= published(result, slower)) return false;
  const std::vector<double> fast = list_speedups(result, faster);
  const std::vector<double> slow = list_speedups(result, slower);
  for (std::size_t i = 0; i < fast.size(); ++i) {
    if (fast[i] < slow[i]) return true;
  }
  return false;
}

SpeedupVerdict judge(const SpeedupResult& result, std::size_t method) {
  if (method == 0) return SpeedupVerdict::kBaseline;
  if (!result.bar) return SpeedupVerdict::kOwnWorkload;
  if (!is_answerable(result, method)) return SpeedupVerdict::kOpenInput;
  if (has_wrong_sign(result, method)) return SpeedupVerdict::kWrongSign;
  // The order to data parallelism is the sign.
  for (std::size_t other = 1; other < kMethods; ++other) {
    if (is_wrong_order(result, method, other) || is_wrong_order(result, other, method)) {
      return SpeedupVerdict::kWrongOrder;
    }
  }
  if (result.fitted == kBlockwiseMethods[method]) return SpeedupVerdict::kFitted;
  return is_within(result, method) ? SpeedupVerdict::kWithinBar : SpeedupVerdict::kOffBar;
}

std::string place_of(const SpeedupResult& result) {
  return fmt::format("for {} on {}", result.published.task, result.published.dataset);
}

std::string explain_miss(const SpeedupResult& result, std::size_t method, SpeedupVerdict verdict) {
  const std::string_view name = method_name(kBlockwiseMethods[method]);
  const std::string where = place_of(result);
  const double simulated = find_speedup(result, method);
  if (verdict == SpeedupVerdict::kWrongSign) {
    const auto kind = [](double speedup) { return speedup > 1 ? "speed-up" : "slow-down"; };
    return fmt::format("{} {} is a {} ({:.3f}) where a {} ({:.3f}) was published", name, where,
                       kind(simulated), simulated, kind(published(result, method)),
                       published(result, method));
  }
  if (verdict == SpeedupVerdict::kWrongOrder) {
    return fmt::format("{} {} stands in another order to the other methods than published", name,
                       where);
  }
  return fmt::format("{} {} is {:.3f} where {:.3f} was published, off by over {:.0f} %", name,
                     where, simulated, published(result, method), 100 * *result.bar);
}

// Returns the methods from slow to fast, those with equal speed-ups in the order of the chart.
template <class Speedup>
std::string list_by_speedup(Speedup speedup) {
  std::array<std::size_t, kMethods> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return speedup(a) < speedup(b); });
  std::string text;
  for (const std::size_t method : order) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", method_name(kBlockwiseMethods[method]));
  }
  return text;
}

}  // namespace

std::string verdict_words(SpeedupVerdict verdict, const SpeedupResult& result) {
  const double percent = 100 * result.bar.value_or(0);
  switch (verdict) {
    case SpeedupVerdict::kBaseline:
      return result.bar ? "baseline" : "baseline; own workload";
    case SpeedupVerdict::kFitted:
      return "fitted, not counted";
    case SpeedupVerdict::kWithinBar:
      return fmt::format("within {:.0f} %", percent);
    case SpeedupVerdict::kOpenInput:
      return fmt::format("over {:.0f} %: an input is open", percent);
    case SpeedupVerdict::kOwnWorkload:
      return "own workload: block times are not published";
    case SpeedupVerdict::kOffBar:
      return fmt::format("OFF BY OVER {:.0f} %", percent);
    case SpeedupVerdict::kWrongOrder:
      return "WRONG ORDER";
    case SpeedupVerdict::kWrongSign:
      return "WRONG SIGN";
  }
  fail_ensure(__FILE__, __LINE__, "an unknown verdict");
}

bool is_miss(SpeedupVerdict verdict) {
  switch (verdict) {
    case SpeedupVerdict::kBaseline:
    case SpeedupVerdict::kFitted:
    case SpeedupVerdict::kWithinBar:
    case SpeedupVerdict::kOpenInput:
    case SpeedupVerdict::kOwnWorkload:
      return false;
    case SpeedupVerdict::kOffBar:
    case SpeedupVerdict::kWrongOrder:
    case SpeedupVerdict::kWrongSign:
      return true;
  }
  fail_ensure(__FILE__, __LINE__, "an unknown verdict");
}

double find_speedup(const SpeedupResult& result, std::size_t method) {
  return static_cast<double>(result.times.front().plain.count()) /
         static_cast<double>(result.times[method].plain.count());
}

std::optional<SpeedupSpread> find_spread(const SpeedupResult& result, std::size_t method) {
  const std::vector<Duration>& base = result.times.front().drawn;
  const std::vector<Duration>& own = result.times[method].drawn;
  if (base.empty() || own.empty()) return std::nullopt;
  std::vector<double> speedups;
  for (std::size_t run = 0; run < std::min(base.size(), own.size()); ++run) {
    speedups.push_back(static_cast<double>(base[run].count()) /
                       static_cast<double>(own[run].count()));
  }
  std::sort(speedups.begin(), speedups.end());
  const auto at = [&](std::size_t percent) {
    return speedups[divide_up(speedups.size() * percent, std::size_t{100}) - 1];
  };
  return SpeedupSpread{.p10 = at(10), .median = at(50), .p90 = at(90)};
}

std::vector<SpeedupVerdict> judge_speedups(const SpeedupResult& result) {
  std::vector<SpeedupVerdict> verdicts;
  for (std::size_t method = 0; method < kMethods; ++method) {
    verdicts.push_back(judge(result, method));
  }
  return verdicts;
}

std::vector<std::string> explain_misses(const SpeedupResult& result) {
  std::vector<std::string> sentences;
  const std::vector<SpeedupVerdict> verdicts = judge_speedups(result);
  for (std::size_t method = 0; method < kMethods; ++method) {
    if (!is_miss(verdicts[method])) continue;
    sentences.push_back(explain_miss(result, method, verdicts[method]));
  }
  return sentences;
}

std::string explain_open_load(const SpeedupResult& result) {
  const OpenLoad& open = *result.open_load;
  const std::string needed = open.needed
                                 ? fmt::format("{:.3f} follows from {:.3f} ms",
                                               published(result, kLayerwise), to_ms(*open.needed))
                                 : fmt::format("no time gives {:.3f}, and none at all {:.3f}",
                                               published(result, kLayerwise), open.without);
  return fmt::format(
      "LS {} is {:.3f}: what a loader takes for a full batch beside those of three other devices "
      "(workers of each rank,\n  threads that decode, the host's cores) is not published and is "
      "taken to be the workers' {:.3f} ms, as for all methods;\n  d speed-up / d time = {:.4f} "
      "per ms; {}",
      place_of(result), find_speedup(result, kLayerwise), to_ms(open.simulated), open.slope_per_ms,
      needed);
}

std::string compare_order(const SpeedupResult& result) {
  const std::string simulated =
      list_by_speedup([&](std::size_t method) { return find_speedup(result, method); });
  const std::string told =
      list_by_speedup([&](std::size_t method) { return published(result, method); });
  const std::string where =
      fmt::format("{} on {}", result.published.task, result.published.dataset);
  if (simulated == told) {
    return fmt::format("{}: from slow to fast {}, as published", where, simulated);
  }
  return fmt::format("{}: from slow to fast {}; published {}", where, simulated, told);
}

}  // namespace frazil
