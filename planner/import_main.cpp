// frazil import: profiles that other programs measured, as model profiles.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "planner/command_line.h"
#include "profiles/model_profile_json.h"
#include "profiles/quantity_text.h"
#include "traces/kineto_profile.h"

namespace frazil {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr int kMost = 1'000'000;
constexpr const char* kUsage =
    "frazil import kineto TRACE... --out FILE [--micro-batch-size N] [--model NAME] [--json]";

[[noreturn]] void refuse(const std::string& found, const std::string& expected) {
  throw InputError("command line", 0, found, expected);
}

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  const auto text = [] { return po::value<std::string>(); };
  flags.add_options()                                                                        //
      ("word", po::value<std::vector<std::string>>(), "kineto, then its traces")             //
      ("out", text(), "write the model profile")                                             //
      ("micro-batch-size", text(), "samples of a micro-batch in the traced run, default 1")  //
      ("micro-batches", text(), "micro-batches of a traced step, default 1")                 //
      ("model", text(), "name of the model, default imported")                               //
      ("layer-ranges", text(), "names of ranges that mark layers begin so, default layer:")  //
      ("json", po::bool_switch(), "answer in JSON");
  return flags;
}

// Words without a flag (kineto, trace files) as values of --word, for flags are all that verbs
// parse. A flag's value follows it, or an equals sign.
std::vector<std::string> flag_words(int argc, char** argv) {
  constexpr std::array<std::string_view, 3> kSwitches = {"--json", "--help", "--version"};
  std::vector<std::string> words;
  for (int i = 0; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (i > 0 && !word.starts_with("--")) words.emplace_back("--word");
    words.emplace_back(word);
    const bool takes_value = word.starts_with("--") && word.find('=') == std::string_view::npos &&
                             std::find(kSwitches.begin(), kSwitches.end(), word) == kSwitches.end();
    if (i > 0 && takes_value && i + 1 < argc) words.emplace_back(argv[++i]);
  }
  return words;
}

KinetoOptions read_options(const po::variables_map& values) {
  KinetoOptions options;
  const auto number = [&](const char* flag, int& value) {
    if (values.count(flag) == 0) return;
    value = checked_flag(std::string("--") + flag, values[flag].as<std::string>(), 1, kMost);
  };
  number("micro-batch-size", options.micro_batch_size);
  number("micro-batches", options.micro_batches);
  if (values.count("model") > 0) options.model = values["model"].as<std::string>();
  if (values.count("layer-ranges") > 0) {
    options.layer_prefix = values["layer-ranges"].as<std::string>();
    options.needs_ranges = true;
    if (options.layer_prefix.empty()) refuse("an empty --layer-ranges", "the begin of a name");
  }
  return options;
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

const char* name_of(LayerSource source) {
  switch (source) {
    case LayerSource::kRanges:
      return "ranges";
    case LayerSource::kOperations:
      return "operations";
  }
  return "";
}

std::string print_import(const KinetoImport& import) {
  const KinetoReport& report = import.report;
  std::string text = fmt::format(
      "{} layers by {}, {} time, {} events of {} traces, median of {} steps ({} dropped as "
      "warm-up)\n\n",
      import.profile.layers.size(), name_of(report.layers_by),
      report.is_device_time ? "device" : "host", report.events, report.traces, report.steps,
      report.steps_dropped);
  text += fmt::format("{:<32} {:>12} {:>12} {:>12} {:>12}\n", "layer", "F", "I", "W", "update");
  for (const Layer& layer : import.profile.layers) {
    const CostSample& cost = layer.costs.front();
    text += fmt::format("{:<32} {:>12} {:>12} {:>12} {:>12}\n", layer.name, to_text(cost.forward),
                        to_text(cost.backward_input), to_text(cost.backward_weight),
                        to_text(layer.update));
  }
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
  return text;
}

Json share_json(const TimeShare& share) {
  return {{"total_ns", share.total},
          {"attributed_ns", share.attributed},
          {"unattributed_share", 1 - share.share()}};
}

std::string import_json(const KinetoImport& import) {
  const KinetoReport& report = import.report;
  Json layers = Json::array();
  for (const Layer& layer : import.profile.layers) {
    const CostSample& cost = layer.costs.front();
    layers.push_back({{"name", layer.name},
                      {"forward_ns", cost.forward.count()},
                      {"backward_input_ns", cost.backward_input.count()},
                      {"backward_weight_ns", cost.backward_weight.count()},
                      {"update_ns", layer.update.count()}});
  }
  Json unattributed = Json::array();
  for (const auto& [name, time] : report.largest_unattributed) {
    unattributed.push_back({{"operation", to_one_line(name)}, {"ns", time.count()}});
  }
  const Json answer = {{"model", import.profile.model},
                       {"model_hash", model_hash(import.profile)},
                       {"layers_by", name_of(report.layers_by)},
                       {"time", report.is_device_time ? "device" : "host"},
                       {"traces", report.traces},
                       {"events", report.events},
                       {"steps", report.steps},
                       {"steps_dropped", report.steps_dropped},
                       {"backward_was_split_by_rule", import.profile.backward_was_split_by_rule},
                       {"layers", layers},
                       {"operations", share_json(report.operations)},
                       {"device", share_json(report.device)},
                       {"communication_ns", report.communication.count()},
                       {"largest_unattributed", unattributed},
                       {"notes", report.notes}};
  return answer.dump(2) + "\n";
}

ExitCode import_verb(const po::variables_map& values) {
  std::vector<std::string> words;
  if (values.count("word") > 0) words = values["word"].as<std::vector<std::string>>();
  if (words.empty() || words.front() != "kineto") {
    refuse(words.empty() ? "nothing to import" : fmt::format("`{}`", words.front()), kUsage);
  }
  if (words.size() == 1) refuse("no trace", kUsage);
  if (values.count("out") == 0) refuse("no --out", "it to be given");
  const KinetoOptions options = read_options(values);
  const KinetoImport import = import_kineto({words.begin() + 1, words.end()}, options);
  write_model_profile(import.profile, values["out"].as<std::string>());
  fmt::print("{}", values["json"].as<bool>() ? import_json(import) : print_import(import));
  return ExitCode::kOk;
}

int run_import_verb(int argc, char** argv) {
  const Verb verb{"import", "Turns traces of PyTorch's profiler into a model profile.", kUsage};
  std::vector<std::string> words = flag_words(argc, argv);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return run_verb(verb, static_cast<int>(pointers.size()), pointers.data(), describe_flags(),
                  import_verb);
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_import_verb(argc, argv); }
