#include "analysis/ablation/ablation_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/ablation/ablation_notes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNothing = "-";

std::string tell_ratio(const std::optional<RatioEstimate>& ratio) {
  if (!ratio) return kNothing;
  if (!ratio->interval) return fmt::format("{:.2f}x", ratio->mean);
  return fmt::format("{:.2f}x [{:.2f}, {:.2f}]", ratio->mean, ratio->interval->low,
                     ratio->interval->high);
}

std::string tell_difference(const std::optional<MeanEstimate>& difference) {
  if (!difference) return kNothing;
  if (!difference->bounds) return fmt::format("{:+.2f}", difference->mean);
  return fmt::format("{:+.2f} [{:+.2f}, {:+.2f}]", difference->mean, difference->bounds->low,
                     difference->bounds->high);
}

bool has_predictions(const Ablation& ablation) {
  return std::any_of(ablation.rows.begin(), ablation.rows.end(),
                     [](const ArmRow& row) { return row.predicted.has_value(); });
}

void add_predicted(const ArmRow& row, std::vector<std::string>& cells) {
  cells.push_back(row.predicted_speed ? fmt::format("{:.2f}x", *row.predicted_speed) : kNothing);
  cells.push_back(row.prediction_error_percent
                      ? fmt::format("{:+.1f}%", *row.prediction_error_percent)
                      : kNothing);
  cells.push_back(row.predicted ? std::string(name_of(row.predicted->basis)) : kNothing);
}

Json to_object(const RatioEstimate& ratio) {
  Json object{{"pairs", ratio.pairs}, {"geometric_mean", ratio.mean}};
  if (ratio.interval) {
    object["low"] = ratio.interval->low;
    object["high"] = ratio.interval->high;
  }
  return object;
}

Json to_object(const MeanEstimate& estimate) {
  Json object{{"pairs", estimate.pairs}, {"mean_points", estimate.mean}};
  if (estimate.bounds) {
    object["deviation_points"] = estimate.deviation;
    object["at_least_points"] = estimate.bounds->at_least;
    object["low_points"] = estimate.bounds->low;
    object["high_points"] = estimate.bounds->high;
  }
  return object;
}

Json to_object(const PredictedRun& predicted) {
  return {{"from", name_of(predicted.basis)},
          {"total_ns", predicted.total().count()},
          {"device_time_ns", predicted.times.held_device_time.count()},
          {"transitions", predicted.times.transitions},
          {"transition_ns", predicted.times.parts.transitions.count()},
          {"filling_ns", predicted.times.parts.filling.count()}};
}

void add_measured(const ArmRow& row, Json& object) {
  object["wall_seconds"] = row.wall_seconds;
  object["device_seconds"] = row.device_seconds;
  object["cluster_seconds"] = row.cluster_seconds;
  object["accuracy_percent"] = row.accuracy_percent;
  object["epochs"] = row.epochs;
  object["transitions"] = row.transitions;
  object["transition_seconds"] = row.transition_seconds;
  if (row.more_time_percent) object["more_time_percent"] = *row.more_time_percent;
  if (row.speed) object["speed_over_unfrozen"] = to_object(*row.speed);
  if (row.device_saving) object["device_saving_over_unfrozen"] = to_object(*row.device_saving);
  if (row.difference) {
    object["difference_to_unfrozen"] = to_object(*row.difference);
    object["verdict"] = name_of(row.verdict);
  }
  if (row.over_shorter) object["difference_to_shorter"] = to_object(*row.over_shorter);
  if (row.beats_shorter) object["beats_shorter"] = *row.beats_shorter;
  object["has_weights_of_all"] = row.has_weights_of_all;
  object["disturbed_seeds"] = row.disturbed;
}

Json to_object(const ArmRow& row) {
  Json object{{"arm", facts_of(row.arm).name}, {"seeds", row.seeds}};
  if (!row.unfit.empty()) object["does_not_fit"] = row.unfit;
  if (row.has_run()) add_measured(row, object);
  if (row.predicted) object["predicted"] = to_object(*row.predicted);
  if (row.predicted_speed) object["predicted_speed"] = *row.predicted_speed;
  if (row.prediction_error_percent) {
    object["prediction_error_percent"] = *row.prediction_error_percent;
  }
  return object;
}

}  // namespace

std::string tell_verdict(const ArmRow& row) {
  if (!row.unfit.empty()) return "does not fit";
  if (row.arm == Arm::kUnfrozen || !row.difference) return kNothing;
  std::string verdict(name_of(row.verdict));
  if (row.beats_shorter) {
    verdict += *row.beats_shorter ? ", better than shorter" : ", not better than shorter";
  }
  return verdict;
}

Table tabulate_arms(const Ablation& ablation) {
  const bool predicted = has_predictions(ablation);
  Table table{{"arm", "speed [95 %]"}, {}};
  const auto add_header = [&](std::initializer_list<const char*> names) {
    table.header.insert(table.header.end(), names.begin(), names.end());
  };
  if (predicted) add_header({"predicted speed", "time error", "predicted from"});
  add_header({"accuracy %", "difference [95 %]", "verdict", "time s", "device s", "seeds"});
  for (const ArmRow& row : ablation.rows) {
    std::vector<std::string> cells{std::string(facts_of(row.arm).name), tell_ratio(row.speed)};
    if (predicted) add_predicted(row, cells);
    const auto number = [&](double value, int decimals) {
      return row.has_run() ? fmt::format("{:.{}f}", value, decimals) : kNothing;
    };
    for (std::string cell : {number(row.accuracy_percent, 2), tell_difference(row.difference),
                             tell_verdict(row), number(row.wall_seconds, 2),
                             number(row.device_seconds, 2), std::to_string(row.seeds.size())}) {
      cells.push_back(std::move(cell));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string to_text(const Ablation& ablation) {
  std::string text = to_text(tabulate_arms(ablation));
  for (const std::string& note : list_notes(ablation)) text += note + "\n";
  return text;
}

std::string to_json(const Ablation& ablation) {
  Json answer{{"margin_points", ablation.margin_points}, {"seeds", ablation.seeds}};
  if (ablation.asked_seeds) {
    answer["seeds_asked_by_pilot"] = ablation.asked_seeds->asked;
    answer["seeds_planned"] = ablation.asked_seeds->planned;
  }
  if (ablation.test_error_points) {
    answer["test_samples"] = ablation.test_samples;
    answer["test_error_points"] = *ablation.test_error_points;
  }
  answer["freezing_brought"] = ablation.gain ? Json(name_of(*ablation.gain)) : Json(nullptr);
  answer["predicted_order"] = {{"compared", ablation.order.compared},
                               {"pairs", ablation.order.pairs},
                               {"right", ablation.order.right}};
  if (ablation.limit) {
    const auto speed = ablation.limit->speed();
    answer["compute_limit_ns"] = ablation.limit->time.count();
    answer["compute_limit_over_unfrozen"] = speed ? Json(*speed) : Json(nullptr);
    answer["compute_limit_caches"] = ablation.limit->caches;
  }
  answer["notes"] = list_notes(ablation);
  answer["arms"] = Json::array();
  for (const ArmRow& row : ablation.rows) answer["arms"].push_back(to_object(row));
  answer["pairs"] = Json::array();
  for (const PairResult& result : ablation.results) {
    answer["pairs"].push_back(Json::parse(to_json(result)));
  }
  return answer.dump(2) + "\n";
}

std::string to_csv(const Ablation& ablation) {
  std::string text =
      "arm,seed,accuracy,loss,wall_time_ns,device_time_ns,steps,transitions,transition_time_ns,"
      "foreign_cores,state_hash\n";
  for (const PairResult& result : ablation.results) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", facts_of(result.pair.arm).name,
                        result.pair.seed, result.accuracy, result.loss, result.wall.count(),
                        result.device.count(), result.steps, result.transitions,
                        result.transition_time.count(),
                        result.foreign_cores ? fmt::format("{:.3f}", *result.foreign_cores) : "",
                        result.state_hash);
  }
  return text;
}

}  // namespace frazil
