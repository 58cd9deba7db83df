#include "planner/answers/print_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "planner/prediction/answer_parts.h"
#include "planner/prediction/doubts.h"
#include "planner/search/rankings/rank_plans.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(LayerSource source) {
  switch (source) {
    case LayerSource::kRanges:
      return "ranges";
    case LayerSource::kOperations:
      return "operations";
  }
  return "";
}

Json share_json(const TimeShare& share) {
  return {{"total_ns", share.total},
          {"attributed_ns", share.attributed},
          {"unattributed_share", 1 - share.share()}};
}

std::string print_layers(const ModelProfile& profile) {
  std::size_t width = 32;
  for (const Layer& layer : profile.layers) width = std::max(width, layer.name.size());
  std::string text =
      fmt::format("{:<{}} {:>12} {:>12} {:>12} {:>12}\n", "layer", width, "F", "I", "W", "update");
  for (const Layer& layer : profile.layers) {
    const CostSample& cost = layer.costs.front();
    text += fmt::format("{:<{}} {:>12} {:>12} {:>12} {:>12}\n", layer.name, width,
                        to_text(cost.forward), to_text(cost.backward_input),
                        to_text(cost.backward_weight), to_text(layer.update));
  }
  return text;
}

Json layers_json(const ModelProfile& profile) {
  Json layers = Json::array();
  for (const Layer& layer : profile.layers) {
    const CostSample& cost = layer.costs.front();
    layers.push_back({{"name", layer.name},
                      {"forward_ns", cost.forward.count()},
                      {"backward_input_ns", cost.backward_input.count()},
                      {"backward_weight_ns", cost.backward_weight.count()},
                      {"update_ns", layer.update.count()}});
  }
  return layers;
}

// Returns a line of the provenance. A time is told with a unit that suits it.
std::string describe_provenance(std::string key, const std::string& value) {
  constexpr std::string_view kNanoseconds = "_ns";
  std::int64_t count = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, count);
  const bool is_count = error == std::errc{} && stop == end;
  if (!is_count || !key.ends_with(kNanoseconds)) return fmt::format("{}: {}\n", key, value);
  key.resize(key.size() - kNanoseconds.size());
  std::replace(key.begin(), key.end(), '_', ' ');
  return fmt::format("{}: {}\n", key, to_text(Duration{count}));
}

// Says how unsteady the steps were, and where that matters.
std::string describe_spread(const KinetoReport& report) {
  if (!report.step_spread) return "";
  const auto ppm = static_cast<std::int64_t>(*report.step_spread * 1'000'000);
  return fmt::format("; the middle half of the steps spreads by {}{}", percent(*report.step_spread),
                     ppm > kNoisePpm ? ", more than the noise that frazil plan takes for granted "
                                       "(--noise, default 1 %)"
                                     : "");
}

}  // namespace

std::string print_import(const KinetoImport& import) {
  const KinetoReport& report = import.report;
  std::string text = fmt::format(
      "{} by {}, {} time, {} of {}, median of {} steps ({} dropped as "
      "warm-up){}\n\n",
      count_of(static_cast<std::int64_t>(import.profile.layers.size()), "layer"),
      name_of(report.layers_by), report.is_device_time ? "device" : "host",
      count_of(report.events, "event"), count_of(report.traces, "trace"), report.steps,
      report.steps_dropped, describe_spread(report));
  text += print_layers(import.profile);
  const auto add_share = [&text](const char* what, const TimeShare& share) {
    text += fmt::format("{} time: {}, not attributed {}\n", what, to_text(Duration{share.total}),
                        percent(1 - share.share()));
  };
  text += "\n";
  add_share("operation", report.operations);
  if (report.is_device_time) {
    add_share("device", report.device);
    text += fmt::format("communication, in no layer: {}\n", to_text(report.communication));
  }
  for (const auto& [name, time] : report.largest_unattributed) {
    text += fmt::format("not attributed: {} of {}\n", to_text(time), name);
  }
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  return text + list_doubts(import.profile);
}

std::string import_json(const KinetoImport& import) {
  const KinetoReport& report = import.report;
  Json unattributed = Json::array();
  for (const auto& [name, time] : report.largest_unattributed) {
    unattributed.push_back({{"operation", to_one_line(name)}, {"ns", time.count()}});
  }
  Json answer = {{"model", import.profile.model},
                 {"model_hash", model_hash(import.profile)},
                 {"layers_by", name_of(report.layers_by)},
                 {"time", report.is_device_time ? "device" : "host"},
                 {"micro_batch_size", report.micro_batch_size},
                 {"micro_batches", report.micro_batches},
                 {"traces", report.traces},
                 {"events", report.events},
                 {"steps", report.steps},
                 {"steps_dropped", report.steps_dropped},
                 {"step_spread", report.step_spread ? Json(*report.step_spread) : Json()},
                 {"backward_was_split_by_rule", import.profile.backward_was_split_by_rule},
                 {"layers", layers_json(import.profile)},
                 {"operations", share_json(report.operations)},
                 {"device", share_json(report.device)},
                 {"communication_ns", report.communication.count()},
                 {"largest_unattributed", unattributed},
                 {"notes", report.notes}};
  answer.update(Json::parse(doubts_json(import.profile)));
  return answer.dump(2) + "\n";
}

std::string print_import(const ImportedProfile& import) {
  std::string text =
      fmt::format("{}, {}, micro-batch size {}\n\n",
                  count_of(static_cast<std::int64_t>(import.profile.layers.size()), "layer"),
                  count_of(static_cast<std::int64_t>(import.profile.edges.size()), "edge"),
                  import.profile.layers.front().costs.front().micro_batch_size);
  text += print_layers(import.profile) + "\n";
  for (const auto& [key, value] : import.profile.provenance) {
    text += describe_provenance(key, value);
  }
  for (const std::string& note : import.notes) text += fmt::format("note: {}\n", note);
  return text + list_doubts(import.profile);
}

std::string import_json(const ImportedProfile& import) {
  const ModelProfile& profile = import.profile;
  Json answer = {{"model", profile.model},
                 {"model_hash", model_hash(profile)},
                 {"backward_was_split_by_rule", profile.backward_was_split_by_rule},
                 {"layers", layers_json(profile)},
                 {"edges", profile.edges.size()},
                 {"provenance", profile.provenance},
                 {"notes", import.notes}};
  answer.update(Json::parse(doubts_json(profile)));
  return answer.dump(2) + "\n";
}

}  // namespace frazil
