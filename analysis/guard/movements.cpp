#include "analysis/guard/movements.h"

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
std::optional<Movement> find_host(const std::vector<Movement>& movements,
                                  const std::vector<double>& noises, double floor) {
  std::vector<double> ratios;
  std::vector<double> layer_noises;
  for (std::size_t i = 0; i < movements.size(); ++i) {
    if (movements[i].kind != GuardedKind::kLayer) continue;
    ratios.push_back(movements[i].ratio);
    layer_noises.push_back(noises[i]);
  }
  if (ratios.empty()) return std::nullopt;
  Movement host{.kind = GuardedKind::kHost, .name = "host"};
  host.ratio = host.own_ratio = lower_median(std::move(ratios));
  host.bar = find_bar(floor, lower_median(std::move(layer_noises)));
  host.moved = find_direction(host.ratio, host.ratio, host.bar);
  return host;
}

bool is_slower(const Movement& movement) { return movement.moved == Direction::kSlower; }

bool is_slower_in(const std::vector<Movement>& movements, const Movement& wanted) {
  return std::any_of(movements.begin(), movements.end(), [&](const Movement& movement) {
    return movement.kind == wanted.kind && movement.name == wanted.name && is_slower(movement);
  });
}

// True if hardly any slowdown of the whole would be an alarm.
bool is_unsteady(const std::vector<Movement>& movements) {
  return std::any_of(movements.begin(), movements.end(), [](const Movement& movement) {
    const bool is_whole =
        movement.kind == GuardedKind::kHost || movement.kind == GuardedKind::kStep;
    return is_whole && movement.bar > kLargestBar;
  });
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
  std::vector<double> noises;
  for (const GuardedValue& was : baseline) {
    const GuardedValue* const is = find(today, was);
    if (is == nullptr) continue;
    Movement movement{was.kind, was.name, was.median, is->median};
    movement.ratio = is->median / was.median;
    movement.blocks = std::min(was.blocks, is->blocks);
    movements.push_back(std::move(movement));
    noises.push_back(std::max(was.noise, is->noise));
  }
  const std::optional<Movement> host = find_host(movements, noises, floor);
  for (std::size_t i = 0; i < movements.size(); ++i) {
    Movement& movement = movements[i];
    const bool shares = host && shares_the_host(movement.kind);
    movement.own_ratio = shares ? movement.ratio / host->ratio : movement.ratio;
    movement.bar = find_bar(floor, noises[i]);
    if (is_below_resolution(movement)) continue;
    movement.moved = find_direction(movement.own_ratio, movement.ratio, movement.bar);
  }
  if (host) movements.insert(movements.begin(), *host);
  return movements;
}

bool needs_confirmation(const std::vector<Movement>& movements) {
  return std::any_of(movements.begin(), movements.end(), is_slower);
}

GuardConclusion conclude_guard(const std::vector<Movement>& first,
                               const std::optional<std::vector<Movement>>& second,
                               int fewest_blocks) {
  GuardConclusion conclusion;
  for (const Movement& movement : first) {
    if (!is_slower(movement)) continue;
    const bool is_confirmed = second && is_slower_in(*second, movement);
    (is_confirmed ? conclusion.alarms : conclusion.unconfirmed).push_back(movement);
  }
  drop_explained_step(conclusion.alarms);
  const bool has_few = std::any_of(first.begin(), first.end(), [&](const Movement& movement) {
    return movement.kind != GuardedKind::kHost && movement.blocks < fewest_blocks;
  });
  const bool is_open = !second && !conclusion.unconfirmed.empty();
  if (first.empty() || has_few || is_open) return conclusion;
  if (!conclusion.alarms.empty()) {
    conclusion.verdict = Verdict::kFail;
  } else if (!is_unsteady(first)) {
    conclusion.verdict = Verdict::kPass;
  }
  return conclusion;
}

}  // namespace frazil
