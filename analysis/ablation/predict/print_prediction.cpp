#include "analysis/ablation/predict/print_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/ablation/predict/compute_limit.h"
#include "analysis/tables/table.h"
#include "planner/prediction/answer_parts.h"
#include "planner/prediction/doubts.h"
#include "planner/prediction/plan_notation.h"
#include "planner/prediction/process_notes.h"
#include "planner/trajectory/far_sums.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kNoNumber = "-";

// The unit of a table's times: one in which the longest of them is not tiny.
struct TimeUnit {
  std::string_view name;
  double per_ns;

  std::string text(Duration time) const {
    return fmt::format("{:.3f}", static_cast<double>(time.count()) / per_ns);
  }
};

TimeUnit choose_unit(const PredictedAblation& ablation) {
  Duration longest{0};
  for (const PredictedRun& run : ablation.runs) longest = std::max(longest, run.total());
  if (longest >= std::chrono::seconds{10}) return {"s", 1e9};
  return longest >= std::chrono::milliseconds{10} ? TimeUnit{"ms", 1e6} : TimeUnit{"us", 1e3};
}

std::string short_notation(const Plan& plan) {
  const ParallelShape shape = parallel_shape(plan);
  return fmt::format("{} x {} {}", pipeline_devices_text(shape), shape.replicas,
                     variant_notation(plan));
}

// Returns the first plan, and the last one where the run changes its plan.
std::string list_plans(const PredictedRun& run) {
  std::string text = short_notation(run.walk.front().plan);
  if (run.times.transitions == 0) return text;
  text += run.times.transitions > 1 ? " -> .. -> " : " -> ";
  return text + short_notation(run.walk.back().plan);
}

std::string share_text(Duration part, Duration all) {
  if (all == kNoTime) return std::string(kNoNumber);
  return fmt::format("{:.2f}",
                     100 * static_cast<double>(part.count()) / static_cast<double>(all.count()));
}

Duration all_device_time(const PredictionAnswer& answer, const PredictedRun& run) {
  return times(run.total(), static_cast<Step>(answer.setting.cluster().devices.size()));
}

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.4f}", *ratio) : std::string(kNoNumber);
}

std::vector<std::string> make_row(const PredictionAnswer& answer, const PredictedRun& run,
                                  const TimeUnit& unit) {
  std::string name(facts_of(run.arm).name);
  if (is_fastest(answer.ablation, run)) name += " *";
  if (!run.fits()) {
    std::vector<std::string> row(9, std::string(kNoNumber));
    row.front() = name;
    row.push_back("none: see below");
    return row;
  }
  const RunParts& parts = run.times.parts;
  return {name,
          unit.text(run.total()),
          ratio_text(find_speed(answer.ablation, run)),
          share_text(parts.steps, run.total()),
          share_text(parts.transitions, run.total()),
          share_text(parts.filling, run.total()),
          unit.text(run.times.held_device_time),
          unit.text(all_device_time(answer, run)),
          std::to_string(run.times.plans),
          list_plans(run)};
}

std::string print_rows(const PredictionAnswer& answer) {
  const TimeUnit unit = choose_unit(answer.ablation);
  Table table{.header = {"arm", fmt::format("time {}", unit.name), "x unfrozen", "steps %",
                         "transitions %", "filling %", fmt::format("used devices {}", unit.name),
                         fmt::format("all devices {}", unit.name), "plans", "held"},
              .rows = {}};
  for (const PredictedRun& run : answer.ablation.runs) {
    table.rows.push_back(make_row(answer, run, unit));
  }
  return to_text(table);
}

std::string explain_rows(const PredictionAnswer& answer) {
  const PredictedAblation& ablation = answer.ablation;
  std::string text;
  Suffixes suffixes;
  for (const PredictedRun& run : ablation.runs) {
    if (!run.fits()) text += fmt::format("{}: {}\n", facts_of(run.arm).name, run.reason);
    for (const HeldSegment& held : run.walk) suffixes.add(suffixes_of(held.plan));
  }
  const bool some = std::any_of(ablation.runs.begin(), ablation.runs.end(),
                                [](const PredictedRun& run) { return run.fits(); });
  if (some) text += "* takes the least time of the arms that are no controls\n";
  if (ablation.shorter_steps) {
    text += fmt::format("shorter trains {} of {} steps\n", *ablation.shorter_steps, ablation.steps);
  }
  return text + explain_suffixes(suffixes);
}

ComputeLimit limit_of(const PredictionAnswer& answer) {
  const PredictedRun& unfrozen = answer.ablation.run_of(Arm::kUnfrozen);
  return {.time = answer.ablation.compute_limit,
          .unfrozen = unfrozen.fits() ? std::optional(unfrozen.total()) : std::nullopt,
          .devices = static_cast<std::int64_t>(answer.setting.cluster().devices.size()),
          .caches = answer.ablation.limit_caches};
}

// Lists the arms whose steps go beyond the measured micro-batch sizes.
std::string list_extrapolated(const PredictedAblation& ablation) {
  std::string arms;
  for (const PredictedRun& run : ablation.runs) {
    if (!run.times.extrapolated) continue;
    arms += (arms.empty() ? "" : ", ") + std::string(facts_of(run.arm).name);
  }
  return arms;
}

std::vector<const Plan*> list_held_plans(const PredictedAblation& ablation) {
  std::vector<const Plan*> plans;
  for (const PredictedRun& run : ablation.runs) {
    for (const HeldSegment& held : run.walk) plans.push_back(&held.plan);
  }
  return plans;
}

std::string print_notes(const PredictionAnswer& answer) {
  const ModelProfile& profile = answer.setting.profile();
  std::string text = list_flags(profile, false);
  if (const std::string arms = list_extrapolated(answer.ablation); !arms.empty()) {
    text += fmt::format("note: costs beyond the measured micro-batch sizes are extrapolated: {}\n",
                        arms);
  }
  text += fits_if(profile, "note: the plans fit");
  for (const std::string& note : answer.notes) text += "note: " + note + "\n";
  return text + list_commit_rounds(list_held_plans(answer.ablation), answer.setting.cluster());
}

double round_ratio(double value) { return std::round(value * 1e6) / 1e6; }

Json features_json(const HeldFeatures& features) {
  if (features.depth == 0) return nullptr;
  return {{"layers", features.depth}, {"tier", name_of(features.tier)}};
}

Json segments_json(const PredictedRun& run) {
  Json segments = Json::array();
  for (std::size_t k = 0; k < run.walk.size(); ++k) {
    const HeldSegment& held = run.walk[k];
    segments.push_back({{"step", held.segment.step},
                        {"steps", held.segment.steps},
                        {"mask", held.segment.mask.text()},
                        {"plan", summarize(held.plan)},
                        {"step_ns", run.times.step_times[k].count()},
                        {"cache", features_json(held.cache.features)},
                        {"filling_steps", std::min(held.cache.left, held.segment.steps)}});
  }
  return segments;
}

Json run_json(const PredictionAnswer& answer, const PredictedRun& run) {
  const ArmFacts& facts = facts_of(run.arm);
  Json json = {{"arm", facts.name},
               {"does", facts.one_line},
               {"is_control", facts.is_control},
               {"fastest", is_fastest(answer.ablation, run)}};
  if (!run.fits()) {
    json["no_time_because"] = run.reason;
    return json;
  }
  const auto speed = find_speed(answer.ablation, run);
  const RunParts& parts = run.times.parts;
  json["time_ns"] = run.total().count();
  json["over_unfrozen"] = speed ? Json(round_ratio(*speed)) : Json(nullptr);
  json["steps_ns"] = parts.steps.count();
  json["transitions_ns"] = parts.transitions.count();
  json["filling_ns"] = parts.filling.count();
  json["used_devices_ns"] = run.times.held_device_time.count();
  json["all_devices_ns"] = all_device_time(answer, run).count();
  json["plans"] = run.times.plans;
  json["transitions"] = run.times.transitions;
  json["extrapolated"] = run.times.extrapolated;
  if (run.arm == Arm::kShorter) json["steps"] = *answer.ablation.shorter_steps;
  json["segments"] = segments_json(run);
  return json;
}

}  // namespace

std::string print_prediction(const PredictionAnswer& answer) {
  return print_rows(answer) + "\n" + explain_rows(answer) + tell_limit(limit_of(answer)) + "\n" +
         print_notes(answer);
}

std::string prediction_json(const PredictionAnswer& answer) {
  const PredictedAblation& ablation = answer.ablation;
  const auto speed = limit_of(answer).speed();
  Json json = {{"steps", ablation.steps},
               {"seed", answer.seed},
               {"devices", answer.setting.cluster().devices.size()},
               {"compute_limit_ns", ablation.compute_limit.count()},
               {"compute_limit_over_unfrozen", speed ? Json(round_ratio(*speed)) : Json(nullptr)},
               {"compute_limit_caches", ablation.limit_caches}};
  json["arms"] = Json::array();
  for (const PredictedRun& run : ablation.runs) json["arms"].push_back(run_json(answer, run));
  json["backward_was_split_by_rule"] = answer.setting.profile().backward_was_split_by_rule;
  json["notes"] = answer.notes;
  json.update(Json::parse(doubts_json(answer.setting.profile())));
  return with_commit_rounds(json.dump(2) + "\n", list_held_plans(ablation),
                            answer.setting.cluster());
}

}  // namespace frazil
