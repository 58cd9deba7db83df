#include "analysis/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "analysis/ratio_interval.h"
#include "profiles/error.h"
#include "traces/timeline_csv.h"

namespace frazil {
namespace {

constexpr std::size_t kListed = 20;

using RowKey = std::tuple<PipelineId, StageId, ActionKind>;
using Durations = std::map<RowKey, std::vector<double>>;
// The order in which people look actions up: pipeline, stage, kind, first micro-batch, text.
using ActionKey = std::tuple<RowKey, std::int32_t, std::string>;

const Action& placed_part(const Action& action) {
  const auto* pair = std::get_if<ActionPair>(&action.detail);
  return pair != nullptr && !pair->halves.empty() ? pair->halves.front() : action;
}

RowKey row_key(const Action& action) {
  const Action& part = placed_part(action);
  return {part.pipeline, part.stage, action.kind};
}

Durations collect_durations(const Timeline& timeline) {
  Durations durations;
  for (const Span& span : timeline.spans) {
    durations[row_key(span.action)].push_back(static_cast<double>(span.duration().count()));
  }
  return durations;
}

// A wait for a message and the host's own overhead have no counterpart on the other side: the
// simulator has no task for the wait, the executor no action for the overhead. What all wait for
// is drawn on other lanes, and not at all by the simulator where one process waits for itself.
bool has_counterpart(const Span& span) {
  if (span.action.kind == ActionKind::kBarrier) return false;
  return span.lane != Lane::kReceive && span.lane != Lane::kHost;
}

std::set<ActionKey> collect_actions(const Timeline& timeline) {
  std::set<ActionKey> actions;
  for (const Span& span : timeline.spans) {
    if (!has_counterpart(span)) continue;
    const auto& micro_batches = placed_part(span.action).micro_batches;
    actions.emplace(row_key(span.action), micro_batches ? micro_batches->first.value : -1,
                    to_text(span.action));
  }
  return actions;
}

std::vector<std::string> list_missing(const std::set<ActionKey>& from,
                                      const std::set<ActionKey>& other) {
  std::vector<ActionKey> missing;
  std::set_difference(from.begin(), from.end(), other.begin(), other.end(),
                      std::back_inserter(missing));
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(missing.size(), kListed); ++i) {
    texts.push_back(std::get<std::string>(missing[i]));
  }
  if (missing.size() > kListed) {
    texts.push_back(fmt::format("and {} more", missing.size() - kListed));
  }
  return texts;
}

double divide(Duration predicted, Duration measured) {
  if (measured == Duration{0}) {
    return predicted == Duration{0} ? 1 : std::numeric_limits<double>::infinity();
  }
  return static_cast<double>(predicted.count()) / static_cast<double>(measured.count());
}

Duration rounded_mean(const std::vector<double>& samples, double keep) {
  return Duration{std::llround(trimmed_mean(samples, keep))};
}

std::vector<ActionRow> join_rows(const Timeline& predicted, const Timeline& measured) {
  constexpr double kAll = 1;
  constexpr double kMost = 0.9;
  const Durations predictions = collect_durations(predicted);
  const Durations measurements = collect_durations(measured);
  std::vector<ActionRow> rows;
  for (const auto& [key, samples] : predictions) {
    const auto found = measurements.find(key);
    if (found == measurements.end()) continue;
    rows.push_back({.pipeline = std::get<PipelineId>(key),
                    .stage = std::get<StageId>(key),
                    .kind = std::get<ActionKind>(key),
                    .count = static_cast<std::int64_t>(found->second.size()),
                    .predicted = rounded_mean(samples, kAll),
                    .measured = rounded_mean(found->second, kMost)});
  }
  return rows;
}

bool is_one_window(const std::vector<Step>& steps) {
  return steps.size() <= 1 ||
         (steps.front() == 0 && steps.back() == static_cast<Step>(steps.size()) - 1);
}

// Returns the measured windows by their first steps, in one pass over the spans.
std::map<Step, Timeline> split_windows(const Timeline& measured, Step window) {
  std::map<Step, Timeline> parts;
  const std::vector<Step> firsts = windows_of(measured, window);
  for (const Span& span : measured.spans) {
    const auto after = std::upper_bound(firsts.begin(), firsts.end(), span.action.step);
    if (after == firsts.begin()) continue;
    const Step first = *(after - 1);
    if (span.action.step - first < window) parts[first].spans.push_back(span);
  }
  return parts;
}

// Returns null for a ratio to nothing, which no number can say.
nlohmann::ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

Step count_window(const Timeline& predicted) {
  return std::max<Step>(1, static_cast<Step>(steps_of(predicted).size()));
}

double ActionRow::ratio() const { return divide(predicted, measured); }

Comparison compare(const Timeline& predicted, const Timeline& measured) {
  ENSURE(is_one_window(steps_of(predicted)), "a prediction is one step, or one window");
  Comparison comparison;
  comparison.window = count_window(predicted);
  comparison.predicted_step = makespan(predicted) / comparison.window;
  std::vector<double> makespans;
  for (const auto& [step, timeline] : split_windows(measured, comparison.window)) {
    const Duration length = makespan(timeline) / comparison.window;
    comparison.steps.push_back({step, comparison.predicted_step, length});
    makespans.push_back(static_cast<double>(length.count()));
  }
  if (!makespans.empty()) comparison.measured_step = rounded_mean(makespans, 0.9);
  comparison.step_ratio = divide(comparison.predicted_step, comparison.measured_step);
  comparison.actions = join_rows(predicted, measured);
  const std::set<ActionKey> predicted_actions = collect_actions(predicted);
  const std::set<ActionKey> measured_actions = collect_actions(measured);
  comparison.only_predicted = list_missing(predicted_actions, measured_actions);
  comparison.only_measured = list_missing(measured_actions, predicted_actions);
  return comparison;
}

std::string_view remark_on(ActionKind kind) {
  switch (kind) {
    case ActionKind::kSendForward:
    case ActionKind::kSendBackward:
      return "hand-over, and waking the receiver";
    case ActionKind::kReduceGradients:
    case ActionKind::kBarrier:
      return "with waiting for the other devices";
    case ActionKind::kForward:
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
    case ActionKind::kRecompute:
    case ActionKind::kUpdate:
    case ActionKind::kReceiveForward:
    case ActionKind::kReceiveBackward:
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
    case ActionKind::kPair:
    case ActionKind::kMove:
      return "";
  }
  return "";
}

std::string to_json(const Comparison& comparison) {
  using Json = nlohmann::ordered_json;
  Json actions = Json::array();
  for (const ActionRow& row : comparison.actions) {
    actions.push_back({{"pipeline", row.pipeline.value},
                       {"stage", row.stage.value},
                       {"action", kind_name(row.kind)},
                       {"count", row.count},
                       {"predicted_ns", row.predicted.count()},
                       {"measured_ns", row.measured.count()},
                       {"ratio", finite_or_null(row.ratio())}});
  }
  Json steps = Json::array();
  for (const StepRow& row : comparison.steps) {
    steps.push_back({{"step", row.step},
                     {"predicted_ns", row.predicted.count()},
                     {"measured_ns", row.measured.count()}});
  }
  const Json all = {{"predicted_step_ns", comparison.predicted_step.count()},
                    {"measured_step_ns", comparison.measured_step.count()},
                    {"step_ratio", finite_or_null(comparison.step_ratio)},
                    {"actions", actions},
                    {"steps", steps},
                    {"only_predicted", comparison.only_predicted},
                    {"only_measured", comparison.only_measured}};
  return all.dump(2) + "\n";
}

Timeline read_prediction(const std::filesystem::path& path) {
  Timeline timeline = read_timeline_csv(path);
  const std::vector<Step> steps = steps_of(timeline);
  if (steps.empty() || !is_one_window(steps)) {
    throw InputError(path.string(), 0, fmt::format("{} steps", steps.size()),
                     "the one step of a prediction, or the steps 0, 1, ... of a window");
  }
  return timeline;
}

Timeline read_measured_steps(const std::filesystem::path& path) {
  Timeline timeline = read_timeline_csv(path);
  if (timeline.spans.empty()) {
    throw InputError(path.string(), 0, "0 steps", "at least one measured step");
  }
  return timeline;
}

std::optional<Step> representative_step(const Comparison& comparison) {
  std::vector<std::pair<Duration, Step>> steps;
  for (const StepRow& row : comparison.steps) steps.emplace_back(row.measured, row.step);
  if (steps.empty()) return std::nullopt;
  std::sort(steps.begin(), steps.end());
  return steps[(steps.size() - 1) / 2].second;
}

}  // namespace frazil
