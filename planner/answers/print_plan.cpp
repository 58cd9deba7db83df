#include "planner/answers/print_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "planner/answers/alike_rows.h"
#include "planner/plan/activity.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/answer_parts.h"
#include "planner/prediction/doubts.h"
#include "planner/prediction/plan_notation.h"
#include "planner/prediction/process_notes.h"
#include "planner/prediction/ranking.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const ReductionOverlap& overlap, const Plan& plan) {
  const bool fast = plan.reduction == ReductionMode::kFast;
  return "reductions   overlap with backwards, " +
         (fast ? "in buckets of " + to_text(overlap.bucket) : std::string("node by node")) + "\n";
}

std::string draw_small(const Timeline& timeline) {
  constexpr int kMostDevices = 16;
  constexpr std::int64_t kMostColumns = 100;
  const Duration length = makespan(timeline);
  if (timeline.devices > kMostDevices || length.count() == 0) return "";
  // The shortest compute span is the natural cell; a step whose shortest span is narrower than half
  // a column is not drawn.
  Duration cell = length;
  for (const Span& span : timeline.spans) {
    const bool counts = span.lane == Lane::kCompute && span.duration().count() > 0 &&
                        span.action.kind != ActionKind::kUpdate;
    if (counts) cell = std::min(cell, span.duration());
  }
  const Duration least = (length + Duration{kMostColumns - 1}) / kMostColumns;
  if (cell < least / 2) return "";
  return "\n" + draw(timeline, std::max(cell, least));
}

Duration busy_of_step(const PlanSimulation& simulation, DeviceId device) {
  return busy(simulation.timeline, device) / simulation.steps;
}

std::string device_rows(const SimulatedPlan& simulated) {
  const ModelProfile& profile = simulated.setting.profile();
  const std::vector<Device>& devices = simulated.setting.cluster().devices;
  std::vector<std::string> names;
  std::vector<std::string> cells;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const MemoryPeak& peak = simulated.simulation.memory[d];
    const bool over = peak.total > devices[d].memory_limit;
    names.push_back(devices[d].name);
    cells.push_back(fmt::format("{:>12}  {:>12}  {:>12}  {}{}",
                                to_text(busy_of_step(simulated.simulation, DeviceId{d})),
                                memory_text(profile, peak.total), to_text(devices[d].memory_limit),
                                over ? "DOES NOT FIT: " : "", list_held(peak)));
  }
  const std::vector<AlikeRow> rows = fold_alike_rows(names, cells);
  std::size_t width = 6;
  for (const AlikeRow& row : rows) width = std::max(width, row.name.size());
  std::string text = fmt::format("\n{:<{}}  {:>12}  {:>12}  {:>12}  holds at its peak\n", "device",
                                 width, "busy", "memory peak", "capacity");
  for (const AlikeRow& row : rows) {
    text += fmt::format("{:<{}}  {}\n", row.name, width, cells[row.device]);
  }
  return text + tell_folded(rows, devices.size());
}

std::string describe_search(const WhatIf& what_if, const WhatIfAnswer& answer) {
  if (!what_if.search || !answer.moves_tried) return "";
  const bool for_span = what_if.search->objective == Objective::kSpan;
  const Duration bound = for_span ? answer.bounds.span.time : answer.bounds.makespan.time;
  const Duration time = for_span ? answer.span : answer.makespan;
  const std::string proof =
      time == bound ? "no order is better"
                    : fmt::format("at most {} more than the least", percent(gap(time, bound)));
  return fmt::format("searched     for the least {}: {}, {}\n",
                     objective_name(what_if.search->objective),
                     count_of(*answer.moves_tried, "move"), proof);
}

std::string describe_bytes(const WhatIf& what_if, const WhatIfAnswer& answer) {
  if (!what_if.memory) return "";
  std::string text = "memory      ";
  for (const Bytes peak : answer.peak_bytes) text += " " + to_text(peak) + ",";
  text.back() = ' ';
  text += "at most, by device";
  const std::string unless_input = tell_full_count(*what_if.memory, what_if.schedule);
  if (!what_if.memory->limit) return text + unless_input + "\n";
  const auto excess = find_excess(*what_if.memory, answer.peak_bytes);
  text += excess ? ": DOES NOT FIT, " + *excess + unless_input
                 : ": fits into " + to_text(*what_if.memory->limit);
  return text + "\n";
}

// Returns two lines: what the stages as they lie allow, and what any plan takes.
std::string describe_bounds(Duration makespan, const LowerBound& own, const LowerBound& any) {
  return fmt::format(
      "lower bound  {} ({}) of any order on these stages, {} above it\n"
      "any plan     {} ({}) or more, with other cuts, stages or schedules on as many devices\n",
      to_text(own.time), own.name, percent(gap(makespan, own.time)), to_text(any.time), any.name);
}

std::string describe_step(const SimulatedPlan& simulated) {
  const auto& [plan, setting, simulation, bounds, any_plan, overlap] = simulated;
  const Duration span = max_span(simulation.timeline);
  return fmt::format(
      "makespan     {} ({:.1f} samples/s, bubble {})\n"
      "span         {} (bubble {})\n"
      "{}",
      to_text(simulation.makespan), samples_per_second(plan, simulation.makespan),
      percent(bubble(simulation.timeline)), to_text(span),
      percent(bubble_of_span(simulation.timeline)),
      describe_bounds(simulation.makespan, bounds.makespan, any_plan));
}

// The bounds on one step by itself are none on a step among others.
std::string describe_window(const SimulatedPlan& simulated) {
  const PlanSimulation& simulation = simulated.simulation;
  const auto [busiest, name] = bound_window(simulation);
  return fmt::format(
      "step         {} ({:.1f} samples/s, bubble {})\n"
      "window       {} steps in {}, after which all devices wait for each other\n"
      "lower bound  {} ({}) of a step on these stages, {} above it\n",
      to_text(simulation.step_time), samples_per_second(simulated.plan, simulation.step_time),
      percent(bubble(simulation.timeline)), simulation.steps, to_text(simulation.makespan),
      to_text(busiest), name, percent(gap(simulation.step_time, busiest)));
}

void add_any_plan(const LowerBound& any, Json& json) {
  json["any_plan_at_least_ns"] = any.time.count();
  json["any_plan_bound_name"] = any.name;
}

}  // namespace

std::string print_what_if(const WhatIf& what_if, const WhatIfAnswer& answer) {
  const PlanBounds& bounds = answer.bounds;
  std::string text = fmt::format(
      "{} stages, {} micro-batches, {}\n"
      "makespan     {} (bubble {})\n"
      "span         {} (bubble {})\n"
      "{}"
      "in flight   ",
      what_if.stages, what_if.micro_batches, schedule_name(what_if), to_text(answer.makespan),
      percent(answer.bubble), to_text(answer.span), percent(answer.bubble_span),
      describe_bounds(answer.makespan, bounds.makespan, answer.any_plan));
  for (const int peak : answer.peak_chunks) text += fmt::format(" {}", peak);
  const int chunks = what_if.chunks.value_or(facts_of(what_if.schedule).chunks);
  return text +
         (chunks == 1 ? " micro-batches" : fmt::format(" chunks of 1/{} micro-batch", chunks)) +
         " at most, by device\n" + describe_bytes(what_if, answer) +
         describe_search(what_if, answer) +
         (what_if.backward_was_split ? std::string(kSplitNote) : "");
}

std::string what_if_json(const WhatIf& what_if, const WhatIfAnswer& answer) {
  Json json = {{"schedule", schedule_name(what_if)},
               {"stages", what_if.stages},
               {"micro_batches", what_if.micro_batches},
               {"makespan_ns", answer.makespan.count()},
               {"span_ns", answer.span.count()},
               {"bubble", answer.bubble},
               {"bubble_span", answer.bubble_span},
               {"peak_chunks", answer.peak_chunks},
               {"chunks", what_if.chunks.value_or(facts_of(what_if.schedule).chunks)}};
  if (what_if.memory) {
    Json peaks = Json::array();
    for (const Bytes peak : answer.peak_bytes) peaks.push_back(peak.count);
    json["peak_bytes"] = peaks;
    const std::string unless_input = tell_full_count(*what_if.memory, what_if.schedule);
    if (!unless_input.empty()) json["recomputed_counts_as_kept"] = true;
    if (what_if.memory->limit) {
      json["memory_limit_bytes"] = what_if.memory->limit->count;
      const auto excess = find_excess(*what_if.memory, answer.peak_bytes);
      json["fits"] = !excess.has_value();
      if (excess) json["reason"] = *excess + unless_input;
    }
  }
  if (what_if.backward_was_split) json["backward_was_split_by_rule"] = true;
  json.update(Json::parse(bounds_json(answer.bounds)));
  add_any_plan(answer.any_plan, json);
  if (what_if.search && answer.moves_tried) {
    json["objective"] = objective_name(what_if.search->objective);
    json["moves_tried"] = *answer.moves_tried;
  }
  return json.dump() + "\n";
}

std::string print_simulation(const SimulatedPlan& simulated) {
  const auto& [plan, setting, simulation, bounds, any_plan, overlap] = simulated;
  std::string text = summarize(plan) + "\n";
  text += simulation.steps > 1 ? describe_window(simulated) : describe_step(simulated);
  if (overlap) text += text_of(*overlap, plan);
  text += device_rows(simulated) + list_processes(setting.cluster());
  if (const auto overflow = find_overflow(simulation.memory, setting.cluster())) {
    text += fmt::format("this plan does not fit into memory, and train refuses it: {}\n",
                        overflow->reason);
  } else {
    text += fits_if(setting.profile(), "this plan fits");
  }
  if (find_activity(setting.profile(), plan).cached > 0) text += kCacheNote;
  return text + list_flags(setting.profile(), simulation.extrapolated) +
         list_free_links(setting.cluster()) +
         list_commit_rounds(std::vector{&plan}, setting.cluster()) +
         draw_small(simulation.timeline);
}

std::string simulation_json(const SimulatedPlan& simulated) {
  const auto& [plan, setting, simulation, bounds, any_plan, overlap] = simulated;
  Json json = {{"summary", summarize(plan)},
               {"makespan_ns", simulation.makespan.count()},
               {"span_ns", max_span(simulation.timeline).count()},
               {"samples_per_second", samples_per_second(plan, simulation.step_time)},
               {"bubble", bubble(simulation.timeline)},
               {"bubble_span", bubble_of_span(simulation.timeline)}};
  if (simulation.steps > 1) {
    json["steps"] = simulation.steps;
    json["step_ns"] = simulation.step_time.count();
    json["lower_bound_step_ns"] = bound_window(simulation).time.count();
  } else {
    json.update(Json::parse(bounds_json(bounds)));
    add_any_plan(any_plan, json);
  }
  const ModelProfile& profile = setting.profile();
  const Cluster& cluster = setting.cluster();
  const std::optional<Infeasible> overflow = find_overflow(simulation.memory, cluster);
  json["fits"] = !overflow.has_value();
  if (overflow) json["reason"] = overflow->reason;
  json["extrapolated"] = simulation.extrapolated;
  json["backward_was_split_by_rule"] = profile.backward_was_split_by_rule;
  json["bytes_are_placeholders"] = !unknown_bytes(profile).empty();
  json.update(Json::parse(doubts_json(profile)));
  json.update(Json::parse(processes_json(cluster)));
  json.update(Json::parse(commit_round_json(plan, cluster)));
  if (find_activity(profile, plan).cached > 0) json["cache_reads_are_free"] = true;
  json["reductions_overlap"] = overlap.has_value();
  if (overlap && plan.reduction == ReductionMode::kFast) {
    json["bucket_bytes"] = overlap->bucket.count;
  }
  Json devices = Json::array();
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    Json device = {{"name", cluster.devices[d].name},
                   {"busy_ns", busy_of_step(simulation, DeviceId{d}).count()}};
    device.update(Json::parse(memory_json(simulation.memory[d], cluster.devices[d])));
    devices.push_back(device);
  }
  json["devices"] = devices;
  return json.dump() + "\n";
}

}  // namespace frazil
