// Implements frazil import: turns what other programs measured or planned into profiles and plans.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "planner/actions/validate_plan.h"
#include "planner/answers/print_import.h"
#include "planner/answers/print_plan.h"
#include "planner/interop/pytorch_csv.h"
#include "planner/plan/plan_json.h"
#include "planner/prediction/any_plan_bound.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "planner/verbs/import_sailor.h"
#include "planner/what_if/plan_changes.h"
#include "profiles/cluster_json.h"
#include "profiles/import/layer_csv.h"
#include "profiles/import/pipedream_graph.h"
#include "profiles/join_loss.h"
#include "profiles/model_profile_json.h"
#include "profiles/setting.h"
#include "profiles/text_file.h"
#include "traces/kineto/optimizer_state.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  flags.add_options()                                                      //
      ("out", text_value("FILE"), "write the model profile, or the plan")  //
      ("micro-batch-size", text_value("N"),
       "samples of a micro-batch in the traced or measured run; default: kineto: as recorded "
       "shapes tell, others: 1")  //
      ("optimizer", known_value("NAME", all_optimizers()),
       "kineto: adamw, adam, sgd, sgd-momentum, ..., whose state is counted; default: as the trace "
       "names it")  //
      ("micro-batches", text_value("N"),
       "kineto: micro-batches of a traced step; default: as often as each layer's range occurs in "
       "one, else 1")                                                       //
      ("model", text_value("NAME"), "name of the model, default imported")  //
      ("layer-ranges", text_value("TEXT"),
       "kineto: names of ranges that mark layers begin so, default layer:")  //
      ("join-loss", po::bool_switch(),
       "kineto, pipedream, csv: a last layer without parameters becomes part of the one before")  //
      ("plan", text_value("FILE"), "pytorch-csv: the plan that gets this schedule")               //
      ("profile", text_value("FILE"), "pytorch-csv: profile of its model")                        //
      ("cluster", text_value("FILE"), "pytorch-csv: its cluster")                                 //
      ("legacy", po::bool_switch(), "pytorch-csv: an older file, with B for I and BW for B")      //
      ("json", po::bool_switch(), "answer in JSON");
  describe_sailor_import(flags);
  return flags;
}

KinetoOptions read_options(const Flags& values) {
  KinetoOptions options;
  if (values.count("micro-batch-size") > 0) {
    options.micro_batch_size = required_integer(values, "micro-batch-size", 1, kMostCounted);
  }
  options.optimizer = optional_text(values, "optimizer");
  if (options.optimizer) {
    options.optimizer = known_name("--optimizer", *options.optimizer, all_optimizers());
  }
  if (values.count("micro-batches") > 0) {
    options.micro_batches = required_integer(values, "micro-batches", 1, kMostCounted);
  }
  options.model = optional_text(values, "model").value_or(options.model);
  if (const auto prefix = optional_text(values, "layer-ranges")) {
    options.layer_prefix = *prefix;
    options.needs_ranges = true;
    if (prefix->empty()) refuse_flags("an empty --layer-ranges", "the begin of a name");
  }
  return options;
}

std::vector<NamedFile> name_files(const std::string& name, const std::vector<std::string>& paths) {
  std::vector<NamedFile> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) files.push_back({name, path});
  return files;
}

// Throws if a trace is named twice, for each counts once.
void refuse_doubled(const std::vector<std::string>& traces) {
  for (auto trace = traces.begin(); trace != traces.end(); ++trace) {
    const bool doubled = std::any_of(traces.begin(), trace, [&](const std::string& before) {
      return is_same_file(before, *trace);
    });
    if (doubled) refuse_flags("trace " + *trace + " twice", "each trace once");
  }
}

ExitCode import_traces(const Flags& values, const std::vector<std::string>& traces) {
  refuse_together(values, "import kineto", {"plan", "profile", "cluster", "legacy", "data"});
  if (traces.empty()) refuse_flags("no trace", "at least one");
  refuse_doubled(traces);
  const std::string out = required_text(values, "out");
  refuse_overwriting(name_files("a trace", traces), {{"--out", out}});
  const KinetoOptions options = read_options(values);
  KinetoImport import = import_kineto({traces.begin(), traces.end()}, options);
  if (is_set(values, "join-loss")) join_loss(import.profile);
  write_and_answer([&] { write_model_profile(import.profile, out); },
                   is_set(values, "json") ? import_json(import) : print_import(import));
  return ExitCode::kOk;
}

// Puts the imported schedule in the place of the plan's own and simulates the plan.
ExitCode import_schedule(const Flags& values, const std::vector<std::string>& files) {
  refuse_together(values, "import pytorch-csv",
                  {"micro-batch-size", "micro-batches", "model", "layer-ranges", "join-loss",
                   "optimizer", "data"});
  if (files.size() != 1) refuse_flags(fmt::format("{} schedules", files.size()), "one");
  const std::string out = required_text(values, "out");
  std::vector<NamedFile> inputs = named_files(values, {"plan", "profile", "cluster"});
  inputs.push_back({"the schedule", files.front()});
  refuse_overwriting(inputs, {{"--out", out}});
  const std::string plan_file = required_text(values, "plan");
  const ModelProfile profile = read_model_profile(required_text(values, "profile"));
  const Cluster cluster = read_cluster(required_text(values, "cluster"));
  const Plan given = read_plan(plan_file);
  const Setting setting{profile, cluster};
  validate(given, setting, plan_file, lines_of(plan_file));
  const PytorchSchedule imported = parse_pytorch_csv(
      read_text_file(files.front()), files.front(),
      is_set(values, "legacy") ? LegacyPytorch::kConvert : LegacyPytorch::kRefuse);
  const auto devices = static_cast<int>(cluster.devices.size());
  const Plan plan = with_pytorch_schedule(given, imported, devices, files.front());
  const PlanSimulation simulation = simulate_plan(plan, setting);
  const PlanBounds bounds = find_bounds(plan, setting);
  const LowerBound any_plan = bound_any_plan(plan, setting);
  const SimulatedPlan simulated{plan, setting, simulation, bounds, any_plan};
  write_and_answer([&] { write_plan(plan, out); }, is_set(values, "json")
                                                       ? simulation_json(simulated)
                                                       : print_simulation(simulated));
  return ExitCode::kOk;
}

// Imports a file of layers in the form of another program.
template <class Parse>
ExitCode import_layers(const Flags& values, const std::string& kind,
                       const std::vector<std::string>& files, Parse parse) {
  refuse_together(values, "import " + kind,
                  {"micro-batches", "layer-ranges", "optimizer", "plan", "profile", "cluster",
                   "legacy", "data"});
  if (files.size() != 1) refuse_flags(fmt::format("{} files", files.size()), "one");
  const std::string out = required_text(values, "out");
  refuse_overwriting({{"the layers", files.front()}}, {{"--out", out}});
  ImportOptions options;
  options.micro_batch_size =
      integer_or(values, "micro-batch-size", options.micro_batch_size, 1, kMostCounted);
  options.model = optional_text(values, "model").value_or(options.model);
  ImportedProfile import = parse(read_text_file(files.front()), files.front(), options);
  if (is_set(values, "join-loss")) join_loss(import.profile);
  if (values.count("micro-batch-size") == 0) {
    note_doubt(import.profile.doubts,
               {DoubtedFact::kMicroBatchSize, DoubtKind::kDefault, "1, for none was given"});
  }
  write_and_answer([&] { write_model_profile(import.profile, out); },
                   is_set(values, "json") ? import_json(import) : print_import(import));
  return ExitCode::kOk;
}

ExitCode import_verb(const Flags& values) {
  constexpr std::array<std::string_view, 5> kKinds = {"kineto", "pytorch-csv", "sailor",
                                                      "pipedream", "csv"};
  std::vector<std::string> words = text_list(values, "word");
  if (words.empty()) refuse_flags("nothing to import", list_names(kKinds));
  const std::string kind = known_name("", words.front(), kKinds);
  words.erase(words.begin());
  if (kind == "kineto") return import_traces(values, words);
  if (kind == "pytorch-csv") return import_schedule(values, words);
  if (kind == "sailor") return import_sailor(values, words);
  if (kind == "pipedream") return import_layers(values, kind, words, parse_pipedream_graph);
  return import_layers(values, kind, words, parse_layer_csv);
}

int run_import_verb(int argc, char** argv) {
  const Verb verb{
      .name = "import",
      .purpose =
          "Turns traces of PyTorch's profiler, PipeDream's graphs and tables of layers into a "
          "model profile, a schedule of PyTorch's into a plan, a plan and measurements of "
          "Sailor's into profile, plan and cluster.",
      .usage =
          "frazil import kineto TRACE... --out FILE [--micro-batch-size N] [--optimizer NAME] "
          "[--model NAME]\n"
          "   or: frazil import pytorch-csv SCHEDULE --plan FILE --profile FILE --cluster FILE "
          "--out FILE\n"
          "   or: frazil import sailor PLAN --data FOLDER --out FOLDER\n"
          "   or: frazil import pipedream GRAPH --out FILE [--micro-batch-size N] [--model NAME]\n"
          "   or: frazil import csv TABLE --out FILE [--micro-batch-size N] [--model NAME]",
      .words = "word",
      .has_help_word = true};
  return run_verb(verb, argc, argv, describe_flags(), import_verb);
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_import_verb(argc, argv); }
