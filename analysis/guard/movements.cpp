#include "analysis/guard/movements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace frazil {
namespace {

// Finds the value or the movement of the same thing.
template <class Thing>
const Thing* find(const std::vector<Thing>& things, const Thing& wanted) {
  const auto found = std::find_if(things.begin(), things.end(), [&](const Thing& thing) {
    return thing.kind == wanted.kind && thing.name == wanted.name;
  });
  return found == things.end() ? nullptr : &*found;
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

// Says whether the host or the step scatters so much that hardly any slowdown would be an alarm; ""
// if neither does. `where` ends the clause.
std::string tell_unsteady(const std::vector<Movement>& movements, const std::string& where) {
  for (const Movement& movement : movements) {
    const bool is_whole =
        movement.kind == GuardedKind::kHost || movement.kind == GuardedKind::kStep;
    if (!is_whole || !is_too_unsteady(movement)) continue;
    return fmt::format(
        "measured too unsteadily: {} scatters by {:.1f} %{}, and may by {:.0f} % at most",
        movement.kind == GuardedKind::kHost ? "the host" : name_thing(movement.kind, movement.name),
        100 * movement.noise, where, 100 * kLargestBar / 2);
  }
  return "";
}

std::string list_names(const std::vector<GuardedValue>& values) {
  std::string names;
  for (const GuardedValue& value : values) {
    names += (names.empty() ? "" : ", ") + name_thing(value.kind, value.name);
  }
  return names;
}

std::string tell_few(int blocks, Guarded guarded) {
  const bool is_one = blocks == 1;
  return fmt::format("only {} {}{} count{}, {} are needed", blocks,
                     guarded == Guarded::kTrace ? "step" : "block", is_one ? "" : "s",
                     is_one ? "s" : "", kFewestBaselineBlocks);
}

// Says that a measurement compares too little; "" if it compares enough.
std::string tell_few(const std::vector<Movement>& movements, Guarded guarded) {
  if (movements.empty()) return "nothing was measured that the baseline has";
  for (const Movement& movement : movements) {
    if (movement.kind == GuardedKind::kHost || movement.blocks >= kFewestBaselineBlocks) continue;
    const std::string few = tell_few(movement.blocks, guarded);
    const std::string name = name_thing(movement.kind, movement.name);
    return movement.kind == GuardedKind::kStep ? few : fmt::format("of {} {}", name, few);
  }
  return "";
}

std::string name_part(Guarded guarded, std::size_t part) {
  if (guarded == Guarded::kPlan) return "in the second measurement";
  return part == 0 ? "in the first half" : "in the second half";
}

// Says why neither alarms nor their absence would mean anything; "" if they do. The halves of a
// trace are long enough where the whole is.
std::string tell_open(const std::vector<Movement>& whole,
                      const std::vector<std::vector<Movement>>& parts, Guarded guarded) {
  std::string open = tell_few(whole, guarded);
  if (open.empty() && parts.empty() && needs_confirmation(whole)) {
    open = "what was slower was not measured again";
  }
  if (open.empty()) open = tell_unsteady(whole, "");
  for (std::size_t part = 0; part < parts.size() && open.empty(); ++part) {
    const std::string where = name_part(guarded, part);
    if (guarded == Guarded::kPlan) open = tell_few(parts[part], guarded);
    if (!open.empty()) open += ", " + where;
    if (open.empty()) open = tell_unsteady(parts[part], " " + where);
  }
  return open;
}

// Says which part does not show that something is slower, and what it shows; "" if all show it.
std::string tell_doubt(const std::vector<std::vector<Movement>>& parts, Guarded guarded,
                       const Movement& wanted) {
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const Movement* const there = find(parts[part], wanted);
    const std::string where = name_part(guarded, part);
    if (there == nullptr) return "nothing of it was measured " + where;
    if (is_slower(*there)) continue;
    const double ratio = std::min(there->ratio, there->own_ratio);
    return fmt::format("{} {} is {:.3f} (bar {:.1f} %)", where,
                       there->own_ratio == ratio && shares_the_host(there->kind)
                           ? "its ratio over the host's"
                           : "its ratio",
                       ratio, 100 * there->bar);
  }
  return "";
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

std::vector<GuardedValue> find_missing_anywhere(
    const std::vector<GuardedValue>& values, const std::vector<std::vector<GuardedValue>>& parts) {
  std::vector<GuardedValue> missing;
  for (const std::vector<GuardedValue>& part : parts) {
    const std::vector<GuardedValue> gone = find_missing(find_missing(values, part), missing);
    missing.insert(missing.end(), gone.begin(), gone.end());
  }
  return missing;
}

bool needs_confirmation(const std::vector<Movement>& movements) {
  return std::any_of(movements.begin(), movements.end(), is_slower);
}

bool is_too_unsteady(const Movement& movement) {
  const double own_bar = 2 * movement.noise;
  return own_bar > kLargestBar && own_bar >= movement.bar;
}

GuardConclusion conclude_guard(const std::vector<Movement>& whole,
                               const std::vector<std::vector<Movement>>& parts, Guarded guarded,
                               const std::vector<GuardedValue>& missing) {
  GuardConclusion conclusion;
  conclusion.reason = tell_open(whole, parts, guarded);
  const bool is_open = !conclusion.reason.empty();
  for (const Movement& movement : whole) {
    if (!is_slower(movement)) continue;
    std::string doubt = tell_doubt(parts, guarded, movement);
    if (doubt.empty() && is_open) {
      doubt = "it shows throughout, but in a measurement too short or too unsteady to tell";
    }
    if (doubt.empty()) {
      conclusion.alarms.push_back(movement);
    } else {
      conclusion.unconfirmed.push_back({movement, std::move(doubt)});
    }
  }
  drop_explained_step(conclusion.alarms);
  if (is_open) return conclusion;
  if (!conclusion.alarms.empty()) {
    conclusion.verdict = Verdict::kFail;
    return conclusion;
  }
  if (missing.empty()) {
    conclusion.verdict = Verdict::kPass;
  } else {
    conclusion.reason = "the baseline has what was not measured today: " + list_names(missing);
  }
  return conclusion;
}

std::string refuse_good_day(const std::vector<GuardedValue>& day,
                            const std::vector<std::vector<GuardedValue>>& parts, Guarded guarded) {
  if (day.empty()) return tell_few(0, guarded);
  std::vector<std::vector<Movement>> movements;
  for (const auto& part : parts) movements.push_back(find_movements(day, part));
  const std::vector<GuardedValue> missing = find_missing_anywhere(day, parts);
  const std::string open = conclude_guard(find_movements(day, day), movements, guarded).reason;
  return open.empty() && !missing.empty() ? "not measured in each half: " + list_names(missing)
                                          : open;
}

}  // namespace frazil
