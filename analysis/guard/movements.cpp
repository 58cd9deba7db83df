#include "analysis/guard/movements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace frazil {
namespace {

const GuardedValue* find(const std::vector<GuardedValue>& values, const GuardedValue& wanted) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const GuardedValue& value) {
    return value.kind == wanted.kind && value.name == wanted.name;
  });
  return found == values.end() ? nullptr : &*found;
}

double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double find_bar(double floor, double noise) { return std::max(floor, 2 * noise); }

// Faster by the same factor as slower: 1 / (1 + bar).
Direction find_direction(double own_ratio, double ratio, double bar) {
  if (std::min(own_ratio, ratio) > 1 + bar) return Direction::kSlower;
  if (std::max(own_ratio, ratio) * (1 + bar) < 1) return Direction::kFaster;
  return Direction::kNone;
}

// True if both medians are times that no clock tells apart.
bool is_below_resolution(const Movement& movement) {
  return movement.kind != GuardedKind::kPrediction &&
         std::abs(movement.today - movement.baseline) <= kGuardResolution;
}

bool shares_the_host(GuardedKind kind) {
  return kind == GuardedKind::kLayer || kind == GuardedKind::kLink;
}

// What all layers share; nothing without layers.
std::optional<Movement> find_host(const std::vector<Movement>& movements, double floor) {
  std::vector<double> ratios;
  std::vector<double> layer_noises;
  for (const Movement& movement : movements) {
    if (movement.kind != GuardedKind::kLayer) continue;
    ratios.push_back(movement.ratio);
    layer_noises.push_back(movement.noise);
  }
  if (ratios.empty()) return std::nullopt;
  Movement host{.kind = GuardedKind::kHost, .name = "host"};
  host.ratio = host.own_ratio = lower_median(std::move(ratios));
  host.noise = lower_median(std::move(layer_noises));
  host.bar = find_bar(floor, host.noise);
  host.moved = find_direction(host.ratio, host.ratio, host.bar);
  return host;
}

bool is_slower(const Movement& movement) { return movement.moved == Direction::kSlower; }

bool is_slower_in(const std::vector<Movement>& movements, const Movement& wanted) {
  return std::any_of(movements.begin(), movements.end(), [&](const Movement& movement) {
    return movement.kind == wanted.kind && movement.name == wanted.name && is_slower(movement);
  });
}

// Says which part of the whole scatters so much that hardly any slowdown would be an alarm; "" if
// none does. A bar that somebody chose to be as wide as the noise is no reason.
std::string tell_unsteady(const std::vector<Movement>& movements) {
  for (const Movement& movement : movements) {
    const bool is_whole =
        movement.kind == GuardedKind::kHost || movement.kind == GuardedKind::kStep;
    const double own_bar = 2 * movement.noise;
    if (!is_whole || own_bar <= kLargestBar || own_bar < movement.bar) continue;
    return fmt::format(
        "measured too unsteadily: {} scatters by {:.1f} %, and may by {:.0f} % at most",
        movement.kind == GuardedKind::kHost ? "the host" : name_thing(movement.kind, movement.name),
        100 * movement.noise, 100 * kLargestBar / 2);
  }
  return "";
}

std::string tell_missing(const std::vector<GuardedValue>& missing) {
  std::string names;
  for (const GuardedValue& value : missing) {
    names += (names.empty() ? "" : ", ") + name_thing(value.kind, value.name);
  }
  return names.empty() ? "" : "the baseline has what was not measured today: " + names;
}

// Says that a block compares too little; "" if it compares enough.
std::string tell_few(const std::vector<Movement>& movements, int fewest_blocks) {
  if (movements.empty()) return "nothing was measured that the baseline has";
  for (const Movement& movement : movements) {
    if (movement.kind == GuardedKind::kHost || movement.blocks >= fewest_blocks) continue;
    return fmt::format("of {} {} blocks or steps count, and {} are needed",
                       name_thing(movement.kind, movement.name), movement.blocks, fewest_blocks);
  }
  return "";
}

// Says why neither alarms nor their absence would mean anything; "" if they do.
std::string tell_open(const std::vector<Movement>& first,
                      const std::optional<std::vector<Movement>>& second, int fewest_blocks) {
  if (const std::string few = tell_few(first, fewest_blocks); !few.empty()) return few;
  if (second) {
    const std::string few = tell_few(*second, fewest_blocks);
    return few.empty() ? "" : few + ", in the second block";
  }
  return needs_confirmation(first) ? "what was slower was not measured again" : "";
}

// A slow layer, link or host slows the step too: it is told by itself where it has no such cause.
void drop_explained_step(std::vector<Movement>& alarms) {
  const auto is_step = [](const Movement& alarm) { return alarm.kind == GuardedKind::kStep; };
  if (std::all_of(alarms.begin(), alarms.end(), is_step)) return;
  alarms.erase(std::remove_if(alarms.begin(), alarms.end(), is_step), alarms.end());
}

}  // namespace

std::vector<Movement> find_movements(const std::vector<GuardedValue>& baseline,
                                     const std::vector<GuardedValue>& today, double floor) {
  std::vector<Movement> movements;
  for (const GuardedValue& was : baseline) {
    const GuardedValue* const is = find(today, was);
    if (is == nullptr) continue;
    Movement movement{was.kind, was.name, was.median, is->median};
    movement.ratio = is->median / was.median;
    movement.blocks = std::min(was.blocks, is->blocks);
    movement.noise = std::max(was.noise, is->noise);
    movements.push_back(std::move(movement));
  }
  const std::optional<Movement> host = find_host(movements, floor);
  for (Movement& movement : movements) {
    const bool shares = host && shares_the_host(movement.kind);
    movement.own_ratio = shares ? movement.ratio / host->ratio : movement.ratio;
    movement.bar = find_bar(floor, movement.noise);
    if (is_below_resolution(movement)) continue;
    movement.moved = find_direction(movement.own_ratio, movement.ratio, movement.bar);
  }
  if (host) movements.insert(movements.begin(), *host);
  return movements;
}

std::vector<GuardedValue> find_missing(const std::vector<GuardedValue>& values,
                                       const std::vector<GuardedValue>& others) {
  std::vector<GuardedValue> missing;
  for (const GuardedValue& value : values) {
    if (find(others, value) == nullptr) missing.push_back(value);
  }
  return missing;
}

bool needs_confirmation(const std::vector<Movement>& movements) {
  return std::any_of(movements.begin(), movements.end(), is_slower);
}

GuardConclusion conclude_guard(const std::vector<Movement>& first,
                               const std::optional<std::vector<Movement>>& second,
                               int fewest_blocks, const std::vector<GuardedValue>& missing) {
  GuardConclusion conclusion;
  for (const Movement& movement : first) {
    if (!is_slower(movement)) continue;
    const bool is_confirmed = second && is_slower_in(*second, movement);
    (is_confirmed ? conclusion.alarms : conclusion.unconfirmed).push_back(movement);
  }
  drop_explained_step(conclusion.alarms);
  conclusion.reason = tell_open(first, second, fewest_blocks);
  if (!conclusion.reason.empty()) return conclusion;
  if (!conclusion.alarms.empty()) {
    conclusion.verdict = Verdict::kFail;
    return conclusion;
  }
  conclusion.reason = tell_missing(missing);
  if (conclusion.reason.empty()) conclusion.reason = tell_unsteady(first);
  if (conclusion.reason.empty() && second) conclusion.reason = tell_unsteady(*second);
  if (conclusion.reason.empty()) conclusion.verdict = Verdict::kPass;
  return conclusion;
}

}  // namespace frazil
