#include "planner/answers/print_trajectory.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "planner/prediction/answer_parts.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

double ratio(Duration a, Duration b) {
  return b.count() == 0 ? 1 : static_cast<double>(a.count()) / static_cast<double>(b.count());
}

const Plan& plan_of(const PlannedTrajectory& planned, std::size_t segment) {
  return planned.candidates[planned.best.states[segment]];
}

// Returns "layers 0-2 in memory", or "nothing".
std::string text_of(const HeldFeatures& features) {
  if (features.depth == 0) return "nothing";
  const std::string layers =
      features.depth == 1 ? "layer 0" : fmt::format("layers 0-{}", features.depth - 1);
  const bool on_disk = features.tier == FeatureTier::kDisk;
  return layers + (on_disk ? " on disk" : " in memory");
}

std::vector<std::string> cache_column(const CachePlan& caches) {
  std::vector<std::string> column{"cached"};
  for (std::size_t k = 0; k < caches.bytes.size(); ++k) {
    const HeldFeatures& features = caches.walk.caches[k].features;
    column.push_back(text_of(features));
    if (features.depth > 0) column.back() += ", " + to_text(caches.bytes[k]);
  }
  std::size_t width = 0;
  for (const std::string& cell : column) width = std::max(width, cell.size());
  for (std::string& cell : column) cell = fmt::format("  {:<{}}", cell, width);
  return column;
}

Duration step_time(const PlannedTrajectory& planned, std::size_t segment) {
  if (planned.caches) return planned.caches->step_times[segment];
  return planned.step_times[segment][planned.best.states[segment]];
}

std::string segment_rows(const PlannedTrajectory& planned) {
  std::size_t width = 4;
  for (const ForecastSegment& segment : planned.segments) {
    width = std::max(width, segment.mask.text().size());
  }
  const auto cached = planned.caches ? cache_column(*planned.caches)
                                     : std::vector<std::string>(planned.segments.size() + 1);
  std::string text = fmt::format("{:>10}  {:>10}  {:<{}}  {:>12}{}  plan\n", "step", "steps",
                                 "mask", width, "a step", cached[0]);
  for (std::size_t k = 0; k < planned.segments.size(); ++k) {
    const ForecastSegment& segment = planned.segments[k];
    const bool stays = k > 0 && planned.best.states[k] == planned.best.states[k - 1];
    text += fmt::format("{:>10}  {:>10}  {:<{}}  {:>12}{}  {}\n", segment.step, segment.steps,
                        segment.mask.text(), width, to_text(step_time(planned, k)), cached[k + 1],
                        stays ? "the same" : summarize(plan_of(planned, k)));
  }
  return text;
}

std::string why(const PlannedTransition& change) {
  if (change.forced) return "the plan before does not fit";
  if (!change.break_even) return "pays with what follows";
  return fmt::format("paid back after {}", count_of(*change.break_even, "step"));
}

std::string transition_rows(const PlannedTrajectory& planned) {
  std::string text;
  for (const PlannedTransition& change : planned.transitions) {
    text += fmt::format("transition at step {}: {} to move, {} in all; {}\n",
                        planned.segments[change.segment].step, to_text(change.cost.moved),
                        to_text(change.cost.total), why(change));
  }
  return text.empty() ? "no transition pays\n" : text;
}

std::string fill_rows(const PlannedTrajectory& planned) {
  std::string text;
  for (const PlannedFill& fill : planned.caches->fills) {
    const std::string source = fill.source.depth == 0 ? "the input" : text_of(fill.source) + " on";
    text += fmt::format(
        "fill at step {}: {}, {}, from {}; {} steps take {} more in all than reading it would; "
        "{}\n",
        planned.segments[fill.segment].step, text_of(fill.features), to_text(fill.bytes), source,
        fill.steps, to_text(fill.cost),
        fill.break_even ? fmt::format("paid back after {}", count_of(*fill.break_even, "step"))
                        : std::string("pays with what follows"));
  }
  if (const auto& least = planned.caches->least_room) {
    text += fmt::format("no cache fits: the smallest takes {}\n", to_text(*least));
  }
  return text.empty() ? "no cache pays\n" : text;
}

std::string compare(const char* what, const std::optional<Trajectory>& other, Duration best) {
  if (!other) return fmt::format("{:<36}does not fit\n", what);
  return fmt::format("{:<36}{:>12}  {:.4f} x\n", what, to_text(other->total),
                     ratio(other->total, best));
}

std::string count_transitions(int changes) {
  return fmt::format("{} {}", changes, changes == 1 ? "transition" : "transitions");
}

std::string online_row(const OnlineRun& run) {
  return fmt::format(
      "without a forecast, over the {} plans that run under every mask, transitions priced alike "
      "both ways: {} with {}, {:.2f} % above the optimum in hindsight, {}; competitive guarantee: "
      "at most {} x that optimum + {}\n",
      run.candidates, to_text(run.paid), count_transitions(run.changes),
      100 * (ratio(run.paid, run.hindsight) - 1), to_text(run.hindsight), run.factor,
      to_text(run.additive));
}

Json features_json(const HeldFeatures& features) {
  if (features.depth == 0) return nullptr;
  return {{"layers", features.depth}, {"tier", name_of(features.tier)}};
}

Json fill_json(const PlannedTrajectory& planned, const PlannedFill& fill) {
  return {{"step", planned.segments[fill.segment].step},
          {"features", features_json(fill.features)},
          {"from", features_json(fill.source)},
          {"bytes", fill.bytes.count},
          {"filling_steps", fill.steps},
          {"cost_ns", fill.cost.count()},
          {"break_even_steps", fill.break_even ? Json(*fill.break_even) : Json(nullptr)}};
}

Json scales_json(const CostScales& scales) {
  return {{"devices_ppm", scales.device_ppm}, {"layers_ppm", scales.layer_ppm}};
}

Json total_json(const std::optional<Trajectory>& trajectory) {
  return trajectory ? Json(trajectory->total.count()) : Json(nullptr);
}

Json transition_json(const PlannedTrajectory& planned, const PlannedTransition& change) {
  return {{"step", planned.segments[change.segment].step},
          {"from", change.from},
          {"to", change.to},
          {"moved_bytes", change.cost.moved.count},
          {"move_ns", change.cost.move.count()},
          {"total_ns", change.cost.total.count()},
          {"forced", change.forced},
          {"break_even_steps", change.break_even ? Json(*change.break_even) : Json(nullptr)}};
}

}  // namespace

std::string print_trajectory(const PlannedTrajectory& planned) {
  std::string text = segment_rows(planned) + "\n" + transition_rows(planned);
  if (planned.caches) text += fill_rows(planned);
  text += "\n";
  text += fmt::format("{:<36}{:>12}\n", "all steps and transitions", to_text(planned.best.total));
  if (planned.caches) text += compare("nothing cached", planned.uncached, planned.best.total);
  text += compare("one plan throughout", planned.held, planned.best.total);
  text += compare(
      planned.caches ? "always the best, nothing cached" : "always the best plan of the moment",
      planned.greedy, planned.best.total);
  if (planned.online) text += online_row(*planned.online);
  if (planned.caches && planned.caches->hosts > 1) {
    text += fmt::format(
        "note: the times are those of one cache that all pipelines share; pipelines on {} hosts "
        "share "
        "none, and find fewer samples\n",
        planned.caches->hosts);
  }
  for (const std::string& sentence : tell_measured_costs(planned.segments)) {
    text += "note: " + sentence + "\n";
  }
  return text;
}

std::string trajectory_json(const PlannedTrajectory& planned) {
  Json json;
  for (std::size_t s = 0; s < planned.candidates.size(); ++s) {
    json["candidates"].push_back(summarize(planned.candidates[s]));
  }
  for (std::size_t k = 0; k < planned.segments.size(); ++k) {
    const ForecastSegment& segment = planned.segments[k];
    const std::size_t held = planned.best.states[k];
    Json row = {{"step", segment.step},
                {"steps", segment.steps},
                {"mask", segment.mask.text()},
                {"candidate", held},
                {"step_ns", step_time(planned, k).count()}};
    if (planned.caches) {
      row["cache"] = features_json(planned.caches->walk.caches[k].features);
      row["cache_bytes"] = planned.caches->bytes[k].count;
    }
    if (!segment.scales.is_empty()) row["measured_costs"] = scales_json(segment.scales);
    json["segments"].push_back(std::move(row));
  }
  json["switches"] = Json::array();
  for (const PlannedTransition& change : planned.transitions) {
    json["switches"].push_back(transition_json(planned, change));
  }
  if (planned.caches) {
    json["fills"] = Json::array();
    for (const PlannedFill& fill : planned.caches->fills) {
      json["fills"].push_back(fill_json(planned, fill));
    }
    json["nothing_cached_ns"] = total_json(planned.uncached);
    if (planned.caches->hosts > 1) json["one_cache_for_hosts"] = planned.caches->hosts;
  }
  json["total_ns"] = planned.best.total.count();
  json["one_plan_ns"] = total_json(planned.held);
  json["greedy_ns"] = total_json(planned.greedy);
  if (planned.online) {
    const OnlineRun& run = *planned.online;
    json["online"] = {{"paid_ns", run.paid.count()}, {"hindsight_ns", run.hindsight.count()},
                      {"switches", run.changes},     {"candidates", run.candidates},
                      {"worst_factor", run.factor},  {"worst_additive_ns", run.additive.count()}};
  }
  return json.dump(2) + "\n";
}

}  // namespace frazil
