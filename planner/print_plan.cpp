#include "planner/print_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "planner/activity.h"
#include "planner/plan_notation.h"
#include "planner/schedule_menu.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCacheNote =
    "note: reading what is cached of frozen layers is taken to need no time\n";

double samples_per_second(const Plan& plan, Duration makespan) {
  if (makespan.count() == 0) return 0;
  return plan.batch_size * 1e9 / static_cast<double>(makespan.count());
}

// How far a time lies above its lower bound.
double gap(Duration time, Duration bound) {
  if (bound.count() == 0) return 0;
  return static_cast<double>(time.count()) / static_cast<double>(bound.count()) - 1;
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string list_cuts(const Plan& plan) {
  std::string text;
  for (const Stage& stage : plan.pipelines.front().stages) {
    if (&stage == &plan.pipelines.front().stages.front()) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ",", stage.layers.front().first.value);
  }
  return text.empty() ? "-" : text;
}

// Which bytes an imported trace could not tell, by the rules that its profile notes down.
std::string unknown_bytes(const ModelProfile& profile) {
  const auto rules = profile.provenance.find("rules");
  if (rules == profile.provenance.end()) return "";
  const auto notes = [&](std::string_view text) {
    return rules->second.find(text) != std::string::npos;
  };
  if (notes("boundary and stash bytes unknown")) return "memory and messages";
  return notes("parameter bytes unknown") ? "memory and reductions" : "";
}

std::string text_of(const ReductionOverlap& overlap, const Plan& plan) {
  const bool fast = plan.reduction == ReductionMode::kFast;
  return "reductions   overlap with backwards, " +
         (fast ? "in buckets of " + to_text(overlap.bucket) : std::string("node by node")) + "\n";
}

// The summary, and what is left for the last micro-batch of a batch that does not divide.
std::string describe(const Plan& plan) {
  const int last = plan.batch_size - (plan.micro_batches() - 1) * plan.micro_batch_size;
  const bool is_short = plan.micro_batches() > 1 && last < plan.micro_batch_size;
  return summarize(plan) + (is_short ? fmt::format(", the last micro-batch of {}", last) : "");
}

// No memory would help: an interpreter refuses it.
bool cannot_be_made(const Candidate& candidate) {
  return candidate.infeasible && candidate.infeasible->needed <= candidate.infeasible->available;
}

Json bounds_json(const PlanBounds& bounds) {
  return {{"lower_bound_makespan_ns", bounds.makespan.time.count()},
          {"lower_bound_makespan_name", bounds.makespan.name},
          {"lower_bound_span_ns", bounds.span.time.count()},
          {"lower_bound_span_name", bounds.span.name}};
}

Json memory_json(const MemoryPeak& peak, const Device& device) {
  Json held = Json::object();
  for (int k = 0; k < kMemoryKinds; ++k) {
    const std::string name(memory_kind_name(static_cast<MemoryKind>(k)));
    held[name + "_bytes"] = peak.held[static_cast<std::size_t>(k)].count;
  }
  return {{"memory_peak_bytes", peak.total.count},
          {"memory_limit_bytes", device.memory_limit.count},
          {"memory_peak_at_ns", peak.at.time_since_epoch().count()},
          {"held", held}};
}

std::string draw_small(const Timeline& timeline) {
  constexpr int kMostDevices = 16;
  constexpr std::int64_t kMostColumns = 100;
  const Duration length = makespan(timeline);
  if (timeline.devices > kMostDevices || length.count() == 0) return "";
  // The shortest compute span is the natural cell; a step that has none this wide is not drawn.
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

std::string device_rows(const SimulatedPlan& simulated) {
  const std::vector<Device>& devices = simulated.cluster.devices;
  std::size_t width = 6;
  for (const Device& device : devices) width = std::max(width, device.name.size());
  std::string text = fmt::format("\n{:<{}}  {:>12}  {:>12}  {:>12}  holds at its peak\n", "device",
                                 width, "busy", "memory peak", "limit");
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const MemoryPeak& peak = simulated.simulation.memory[d];
    const bool over = peak.total > devices[d].memory_limit;
    text += fmt::format("{:<{}}  {:>12}  {:>12}  {:>12}  {}{}\n", devices[d].name, width,
                        to_text(busy(simulated.simulation.timeline, DeviceId{d})),
                        to_text(peak.total), to_text(devices[d].memory_limit),
                        over ? "DOES NOT FIT: " : "", list_held(peak));
  }
  return text;
}

std::string cut_at(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

Bytes largest_peak(const Candidate& candidate) {
  Bytes largest;
  for (const MemoryPeak& peak : candidate.memory) largest = std::max(largest, peak.total);
  return largest;
}

Json candidate_json(const Candidate& candidate, const Cluster& cluster) {
  const Plan& plan = candidate.plan;
  Json json = {{"summary", summarize(plan)},
               {"feasible", !candidate.infeasible.has_value()},
               {"stages", plan.pipelines.front().stages.size()},
               {"replicas", plan.pipelines.size()},
               {"schedule", schedule_notation(plan)},
               {"micro_batch_size", plan.micro_batch_size},
               {"micro_batches", plan.micro_batches()}};
  if (const auto* named = std::get_if<NamedSchedule>(&plan.schedule)) {
    json["chunks"] = named->chunks;
    if (named->in_flight) json["in_flight"] = *named->in_flight;
  }
  json["recompute"] = recomputes(plan);
  if (plan.cache_frozen_prefix) json["cached_prefix"] = true;
  Json pipelines = Json::array();
  for (const Pipeline& pipeline : plan.pipelines) {
    Json cuts = Json::array();
    for (std::size_t s = 1; s < pipeline.stages.size(); ++s) {
      cuts.push_back(pipeline.stages[s].layers.front().first.value);
    }
    pipelines.push_back(cuts);
  }
  json["cuts"] = pipelines;
  json["makespan_ns"] = candidate.makespan.count();
  json["samples_per_second"] = samples_per_second(plan, candidate.makespan);
  json.update(bounds_json(candidate.bounds));
  Json devices = Json::array();
  for (std::size_t d = 0; d < candidate.memory.size(); ++d) {
    devices.push_back(memory_json(candidate.memory[d], cluster.devices[d]));
  }
  json["devices"] = devices;
  json["extrapolated"] = candidate.extrapolated;
  if (candidate.infeasible) {
    json["reason"] = candidate.infeasible->reason;
    json["device"] = candidate.infeasible->device.value;
    json["needed_bytes"] = candidate.infeasible->needed.count;
    json["available_bytes"] = candidate.infeasible->available.count;
  }
  return json;
}

struct RankingCounts {
  std::int64_t fit = 0;
  std::int64_t too_large = 0;
  std::int64_t not_made = 0;
  std::int64_t bounded = 0;  // never tried: their lower bounds are too high
};

std::int64_t& tally(RankingCounts& counts, Rejection::Why why) {
  switch (why) {
    case Rejection::Why::kBound:
      return counts.bounded;
    case Rejection::Why::kSlower:
      return counts.fit;
    case Rejection::Why::kMemory:
      return counts.too_large;
    case Rejection::Why::kRefused:
      return counts.not_made;
  }
  return counts.bounded;
}

RankingCounts count_candidates(const Ranking& ranking) {
  RankingCounts counts;
  for (const Candidate& candidate : ranking.candidates) {
    ++(cannot_be_made(candidate)          ? counts.not_made
       : candidate.infeasible.has_value() ? counts.too_large
                                          : counts.fit);
  }
  for (const RejectedShapes& rejected : ranking.rejected) {
    tally(counts, rejected.rejection.why) += rejected.candidates;
  }
  return counts;
}

// Of a search that ended before its answer was proven.
std::string text_of(const NotLookedAt& left, const Candidate& best) {
  return fmt::format("{} not looked at; none takes less than {}, and the best is {} above that\n",
                     count_of(left.candidates, "plan"), to_text(left.at_least),
                     percent(gap(best.makespan, std::min(best.makespan, left.at_least))));
}

std::string text_of(const RankingCounts& counts, std::size_t devices) {
  std::string text =
      fmt::format("{} {} on {}", count_of(counts.fit, "plan"), counts.fit == 1 ? "fits" : "fit",
                  count_of(static_cast<std::int64_t>(devices), "device"));
  text += fmt::format(", {} {}", counts.too_large, counts.too_large == 1 ? "does not" : "do not");
  if (counts.not_made > 0) text += fmt::format(", {} cannot be made", counts.not_made);
  if (counts.bounded > 0) text += fmt::format(", {} cannot be as fast", counts.bounded);
  return text + "\n";
}

std::size_t widest_schedule(const Ranking& ranking) {
  std::size_t width = 8;
  for (const Candidate& candidate : ranking.candidates) {
    width = std::max(width, variant_notation(candidate.plan).size());
  }
  return width;
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

}  // namespace

std::string list_flags(const ModelProfile& profile, bool extrapolated) {
  std::string text;
  if (const std::string unknown = unknown_bytes(profile); !unknown.empty()) {
    text += fmt::format(
        "note: {} are not known: bytes in the profile are placeholders for what its trace does "
        "not tell\n",
        unknown);
  }
  if (extrapolated) text += "note: some costs are extrapolated beyond the measured sizes\n";
  if (profile.backward_was_split_by_rule) {
    text += "note: the profile's backward was split into I and W by rule, not measured\n";
  }
  return text;
}

std::string list_held(const MemoryPeak& peak) {
  std::string text;
  for (int k = 0; k < kMemoryKinds; ++k) {
    const Bytes held = peak.held[static_cast<std::size_t>(k)];
    if (held.count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        memory_kind_name(static_cast<MemoryKind>(k)), to_text(held));
  }
  return text.empty() ? "nothing" : text;
}

std::string count_of(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : noun.ends_with("h") ? "es" : "s");
}

std::string print_what_if(const WhatIf& what_if, const WhatIfAnswer& answer) {
  const PlanBounds& bounds = answer.bounds;
  std::string text = fmt::format(
      "{} stages, {} micro-batches, {}\n"
      "makespan     {} (bubble {})\n"
      "span         {} (bubble {})\n"
      "lower bound  {} ({}), {} above it\n"
      "in flight   ",
      what_if.stages, what_if.micro_batches, schedule_name(what_if), to_text(answer.makespan),
      percent(answer.bubble), to_text(answer.span), percent(answer.bubble_span),
      to_text(bounds.makespan.time), bounds.makespan.name,
      percent(gap(answer.makespan, bounds.makespan.time)));
  for (const int peak : answer.peak_chunks) text += fmt::format(" {}", peak);
  const int chunks = what_if.chunks.value_or(family_of(what_if.schedule).chunks);
  return text +
         (chunks == 1 ? " micro-batches" : fmt::format(" chunks of 1/{} micro-batch", chunks)) +
         " at most, by device\n" + describe_search(what_if, answer);
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
               {"chunks", what_if.chunks.value_or(family_of(what_if.schedule).chunks)}};
  json.update(bounds_json(answer.bounds));
  if (what_if.search && answer.moves_tried) {
    json["objective"] = objective_name(what_if.search->objective);
    json["moves_tried"] = *answer.moves_tried;
  }
  return json.dump() + "\n";
}

std::string print_simulation(const SimulatedPlan& simulated) {
  const auto& [plan, profile, cluster, simulation, bounds, overlap] = simulated;
  const Duration span = max_span(simulation.timeline);
  std::string text = fmt::format(
      "{}\n"
      "makespan     {} ({:.1f} samples/s, bubble {})\n"
      "span         {} (bubble {})\n"
      "lower bound  {} ({}), {} above it\n",
      describe(plan), to_text(simulation.makespan), samples_per_second(plan, simulation.makespan),
      percent(bubble(simulation.timeline)), to_text(span),
      percent(bubble_of_span(simulation.timeline)), to_text(bounds.makespan.time),
      bounds.makespan.name, percent(gap(simulation.makespan, bounds.makespan.time)));
  if (overlap) text += text_of(*overlap, plan);
  text += device_rows(simulated);
  if (const auto overflow = find_overflow(simulation.memory, cluster)) {
    text += fmt::format("this plan does not fit into memory, and train refuses it: {}\n",
                        overflow->reason);
  }
  if (find_activity(profile, plan).cached > 0) text += kCacheNote;
  return text + list_flags(profile, simulation.extrapolated) + draw_small(simulation.timeline);
}

std::string simulation_json(const SimulatedPlan& simulated) {
  const auto& [plan, profile, cluster, simulation, bounds, overlap] = simulated;
  Json json = {{"summary", summarize(plan)},
               {"makespan_ns", simulation.makespan.count()},
               {"span_ns", max_span(simulation.timeline).count()},
               {"samples_per_second", samples_per_second(plan, simulation.makespan)},
               {"bubble", bubble(simulation.timeline)},
               {"bubble_span", bubble_of_span(simulation.timeline)}};
  json.update(bounds_json(bounds));
  const std::optional<Infeasible> overflow = find_overflow(simulation.memory, cluster);
  json["fits"] = !overflow.has_value();
  if (overflow) json["reason"] = overflow->reason;
  json["extrapolated"] = simulation.extrapolated;
  json["backward_was_split_by_rule"] = profile.backward_was_split_by_rule;
  json["bytes_are_placeholders"] = !unknown_bytes(profile).empty();
  if (find_activity(profile, plan).cached > 0) json["cache_reads_are_free"] = true;
  json["reductions_overlap"] = overlap.has_value();
  if (overlap && plan.reduction == ReductionMode::kFast) {
    json["bucket_bytes"] = overlap->bucket.count;
  }
  Json devices = Json::array();
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    Json device = {{"name", cluster.devices[d].name},
                   {"busy_ns", busy(simulation.timeline, DeviceId{d}).count()}};
    device.update(memory_json(simulation.memory[d], cluster.devices[d]));
    devices.push_back(device);
  }
  json["devices"] = devices;
  return json.dump() + "\n";
}

std::string print_ranking(const Ranking& ranking, const Cluster& cluster,
                          const ModelProfile& profile, int top) {
  const std::size_t width = widest_schedule(ranking);
  std::string text = fmt::format("{:>4}  {:>12}  {:>10}  {:<8}  {:<{}}  {:>9}  {:>11}  {:>9}  {}\n",
                                 "rank", "makespan", "samples/s", "stages", "schedule", width,
                                 "micro-b.", "memory peak", "above lb", "cuts");
  std::string infeasible;
  int feasible_count = 0;
  int infeasible_count = 0;
  bool extrapolated = false;
  Suffixes shown;
  bool caches = false;
  for (const Candidate& candidate : ranking.candidates) {
    const Plan& plan = candidate.plan;
    const std::string micro = fmt::format("{} of {}", plan.micro_batches(), plan.micro_batch_size);
    if (candidate.infeasible) {
      if (++infeasible_count > top) continue;
      shown.add(suffixes_of(plan));
      infeasible += fmt::format("      {:<8}  {:<{}}  {:>9}  {}\n", shape_notation(plan),
                                variant_notation(plan), width, micro, candidate.infeasible->reason);
      continue;
    }
    if (++feasible_count > top) continue;
    shown.add(suffixes_of(plan));
    extrapolated = extrapolated || candidate.extrapolated;
    caches = caches || plan.cache_frozen_prefix;
    text += fmt::format("{:>4}  {:>12}  {:>10.1f}  {:<8}  {:<{}}  {:>9}  {:>11}  {:>9}  {}\n",
                        feasible_count, to_text(candidate.makespan),
                        samples_per_second(plan, candidate.makespan), shape_notation(plan),
                        variant_notation(plan), width, micro, to_text(largest_peak(candidate)),
                        percent(gap(candidate.makespan, candidate.bounds.makespan.time)),
                        cut_at(list_cuts(plan), 40));
  }
  text += text_of(count_candidates(ranking), cluster.devices.size());
  if (ranking.left) text += text_of(*ranking.left, *ranking.best());
  if (caches) text += kCacheNote;
  return text + infeasible + explain_suffixes(shown) + list_flags(profile, extrapolated);
}

std::string ranking_json(const Ranking& ranking, const Cluster& cluster,
                         const ModelProfile& profile, int top, const std::string& more) {
  Json feasible = Json::array();
  Json infeasible = Json::array();
  for (const Candidate& candidate : ranking.candidates) {
    Json& list = candidate.infeasible ? infeasible : feasible;
    if (static_cast<int>(list.size()) < top) list.push_back(candidate_json(candidate, cluster));
  }
  const RankingCounts counts = count_candidates(ranking);
  Json json = {{"candidates", counts.fit + counts.too_large + counts.not_made + counts.bounded},
               {"fit", counts.fit},
               {"do_not_fit", counts.too_large},
               {"cannot_be_made", counts.not_made},
               {"cannot_be_as_fast", counts.bounded},
               {"backward_was_split_by_rule", profile.backward_was_split_by_rule},
               {"bytes_are_placeholders", !unknown_bytes(profile).empty()},
               {"feasible", feasible},
               {"infeasible", infeasible}};
  if (ranking.left) {
    json["not_looked_at"] = ranking.left->candidates;
    json["not_looked_at_take_at_least_ns"] = ranking.left->at_least.count();
  }
  json.update(Json::parse(more));
  return json.dump() + "\n";
}

std::string explain_infeasible(const Ranking& ranking) {
  if (ranking.candidates.empty()) return "no plan is feasible: there is nothing to choose from";
  const Candidate& nearest = ranking.candidates.front();
  return fmt::format("no plan is feasible; the nearest, {}: {}", summarize(nearest.plan),
                     nearest.infeasible ? nearest.infeasible->reason : "fits");
}

}  // namespace frazil
