// Implements frazil export: writes a plan's step in the form of another program, or as a picture.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/svg/gantt.h"
#include "planner/actions/validate_plan.h"
#include "planner/interop/chakra.h"
#include "planner/interop/pytorch_csv.h"
#include "planner/interop/pytorch_menu.h"
#include "planner/interop/torchtitan.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "planner/verbs/what_if_flags.h"
#include "profiles/cluster_json.h"
#include "profiles/model_profile_json.h"
#include "profiles/quantity_text.h"
#include "profiles/setting.h"
#include "profiles/text_file.h"
#include "traces/chrome_trace.h"
#include "traces/kernel_trace.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

constexpr std::array<std::string_view, 6> kForms = {"pytorch-csv", "torchtitan", "chakra",
                                                    "chrome",      "svg",        "html"};

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  describe_what_if(flags);
  flags.add_options()("plan", text_value("FILE"), "plan to export")  //
      ("profile", text_value("FILE"), "profile of its model")        //
      ("cluster", text_value("FILE"), "its cluster")                 //
      ("to", known_value("FORM", kForms),
       "pytorch-csv: for torch.distributed.pipelining; torchtitan: that and the modules of each "
       "stage; chakra: for ASTRA-sim; chrome: for Perfetto; svg, html: a Gantt picture with memory "
       "over time")                                                                          //
      ("comms", po::bool_switch(), "with messages and reductions, PyTorch's compute_comms")  //
      ("per-device", po::bool_switch(),
       "chrome: a file for each device, numbered, in the form of PyTorch's profiler, for Holistic "
       "Trace Analysis")  //
      ("out", text_value("FILE"),
       "file to write; of several pipelines one file each, numbered; torchtitan: OUT.csv and "
       "OUT.toml; chakra: OUT.0.et, OUT.1.et, "
       "... by device, and OUT.groups.json where collectives run over some of the devices")  //
      ("json", po::bool_switch(), "answer in JSON");
  return flags;
}

constexpr Duration kOneAction{1'000'000};  // of a what-if without times

WhatIfInputs read_inputs(const Flags& values) {
  refuse_together(values, "--stages", {"profile", "cluster"});
  const WhatIf what_if = read_what_if(values, kOneAction);
  WhatIfInputs inputs = make_what_if(what_if);
  search_what_if(what_if, inputs);
  return inputs;
}

WhatIfInputs read_files(const Flags& values) {
  refuse_together(values, "--plan",
                  {"stages", "micro-batches", "schedule", "objective", "budget", "chunks",
                   "in-flight", "forward", "backward-input", "backward-weight", "backward", "hop"});
  const std::string file = required_text(values, "plan");
  WhatIfInputs inputs{read_model_profile(required_text(values, "profile")),
                      read_cluster(required_text(values, "cluster")), read_plan(file)};
  validate(inputs.plan, {inputs.profile, inputs.cluster}, file, lines_of(file));
  return inputs;
}

// Writes all files, or none if one would take the place of an input.
void write_files(const Flags& values, const std::vector<NewFile>& files) {
  std::vector<NamedFile> outputs;
  outputs.reserve(files.size());
  for (const NewFile& file : files) outputs.push_back({"--out", file.path});
  refuse_overwriting(named_files(values, {"plan", "profile", "cluster"}), outputs);
  write_text_files(files);
  std::string answer;
  nlohmann::ordered_json json = {{"files", nlohmann::ordered_json::array()}};
  for (const NewFile& file : files) {
    answer += fmt::format("wrote {}\n", file.path.string());
    json["files"].push_back(to_one_line(file.path.string()));
  }
  const auto given = [&](const char* flag) { return values.count(flag) > 0; };
  if (given("stages") && required_text(values, "to") != "pytorch-csv" && !given("forward") &&
      !given("backward-input") && !given("backward-weight") && !given("backward")) {
    answer += fmt::format("without times every action takes {:g} ms\n", to_ms(kOneAction));
    json["assumed_action_ns"] = kOneAction.count();
  }
  print_answer(is_set(values, "json") ? json.dump() + "\n" : answer);
}

// Names the file of one pipeline or device: "schedule.csv" of number 1 is "schedule.1.csv".
std::filesystem::path number_file(const std::filesystem::path& out, std::size_t number) {
  std::filesystem::path numbered = out;
  return numbered.replace_extension(fmt::format("{}{}", number, out.extension().string()));
}

// Returns the schedule in PyTorch's form, one text per pipeline.
std::vector<std::string> make_pytorch(const WhatIfInputs& inputs, PytorchDialect dialect) {
  const auto& [profile, cluster, plan] = inputs;
  const Schedule compute =
      make_schedule(plan, static_cast<int>(cluster.devices.size()), Setting{profile, cluster});
  // PyTorch asks a split backward for its I everywhere, also where no input wants a gradient.
  Activity activity = find_activity(profile, plan.mask);
  for (LayerActivity& layer : activity.layers) layer.input_gradient |= layer.weight_gradient;
  return to_pytorch_csv(complete_schedule(compute, plan, profile, activity), dialect);
}

void export_pytorch(const Flags& values, const WhatIfInputs& inputs,
                    const std::filesystem::path& out) {
  refuse_foreign_schedule(inputs.plan);
  const std::vector<std::string> texts =
      make_pytorch(inputs, is_set(values, "comms") ? PytorchDialect::kComputeComms
                                                   : PytorchDialect::kComputeOnly);
  std::vector<NewFile> files;
  files.reserve(texts.size());
  for (const std::string& text : texts) {
    files.push_back({texts.size() == 1 ? out : number_file(out, files.size()), text});
  }
  write_files(values, files);
}

// Writes the schedule of one pipeline, for all are alike, and what asks torchtitan for the plan.
void export_torchtitan(const Flags& values, const WhatIfInputs& inputs, const std::string& prefix) {
  refuse_foreign_schedule(inputs.plan);
  const std::string csv = prefix + ".csv";
  const std::string toml =
      to_torchtitan_toml(inputs.plan, inputs.profile, csv, required_text(values, "profile"));
  const std::vector<std::string> texts = make_pytorch(inputs, PytorchDialect::kComputeOnly);
  if (std::adjacent_find(texts.begin(), texts.end(), std::not_equal_to<>()) != texts.end()) {
    throw InfeasibleError(
        "torchtitan has one schedule for all pipelines, and those of this plan have their own");
  }
  write_files(values, {{csv, texts.front()}, {prefix + ".toml", toml}});
}

SimulatedStep simulate_inputs(const WhatIfInputs& inputs, bool is_what_if,
                              const StepOptions& options = {}) {
  return is_what_if ? simulate_what_if(inputs)
                    : simulate_step(inputs.plan, {inputs.profile, inputs.cluster}, options);
}

void export_chakra(const Flags& values, const WhatIfInputs& inputs, bool is_what_if,
                   const std::string& prefix) {
  const auto& [profile, cluster, plan] = inputs;
  // A Chakra trace cannot say that devices wait for each other without a message.
  const SimulatedStep step = simulate_inputs(inputs, is_what_if, {.commit_round = false});
  ChakraTraces traces = to_chakra(step, plan, {profile, cluster});
  std::vector<NewFile> files;
  for (std::string& trace : traces.files) {
    files.push_back({fmt::format("{}.{}.et", prefix, files.size()), std::move(trace)});
  }
  if (!traces.groups.empty()) files.push_back({prefix + ".groups.json", traces.groups});
  write_files(values, files);
}

// Writes a file for each device that has work: the tools of this format take an empty trace for a
// broken one.
void export_kernels(const Flags& values, const WhatIfInputs& inputs, bool is_what_if,
                    const std::filesystem::path& out) {
  const auto devices = static_cast<int>(inputs.cluster.devices.size());
  // Viewers open these by their ending.
  std::filesystem::path named = out;
  if (!named.has_extension()) named += ".json";
  const Timeline timeline = summarize(simulate_inputs(inputs, is_what_if), devices).timeline;
  std::set<DeviceId> busy;
  for (const Span& span : timeline.spans) busy.insert(span.device);
  std::vector<NewFile> files;
  files.reserve(busy.size());
  for (const DeviceId device : busy) {
    files.push_back({number_file(named, device.index()), to_kernel_trace(timeline, device)});
  }
  write_files(values, files);
}

std::string draw(const std::string& format, const WhatIfInputs& inputs, bool is_what_if) {
  const SimulatedStep step = simulate_inputs(inputs, is_what_if);
  if (format == "chrome") {
    const Timeline timeline =
        summarize(step, static_cast<int>(inputs.cluster.devices.size())).timeline;
    return to_chrome_json({{"predicted", &timeline}});
  }
  const auto* named = std::get_if<NamedSchedule>(&inputs.plan.schedule);
  const std::string what_if = fmt::format("{} on {} devices, {} micro-batches",
                                          named == nullptr ? "search" : schedule_name(named->kind),
                                          inputs.cluster.devices.size(), inputs.plan.batch_size);
  const GanttInput input{.title = is_what_if ? what_if : summarize(inputs.plan),
                         .step = &step,
                         .setting = {inputs.profile, inputs.cluster},
                         .counts_chunks = is_what_if};
  return format == "svg" ? gantt_svg(input) : gantt_html(input);
}

ExitCode export_verb(const Flags& values) {
  const std::string format = known_name("--to", required_text(values, "to"), kForms);
  const std::filesystem::path out = required_text(values, "out");
  refuse_folder_place({"--out", out});
  const bool is_plan = values.count("plan") > 0;
  if (!is_plan && values.count("stages") == 0) {
    refuse_flags("neither --plan nor --stages", "one of them");
  }
  if (format == "torchtitan" && !is_plan) refuse_flags("--stages with --to torchtitan", "--plan");
  const WhatIfInputs inputs = is_plan ? read_files(values) : read_inputs(values);
  if (format == "pytorch-csv") {
    if (is_set(values, "per-device")) refuse_flags("--per-device with --to pytorch-csv", "chrome");
    export_pytorch(values, inputs, out);
  } else {
    if (is_set(values, "comms")) refuse_flags("--comms with --to " + format, "pytorch-csv");
    if (is_set(values, "per-device") && format != "chrome") {
      refuse_flags("--per-device with --to " + format, "chrome");
    }
    if (is_set(values, "per-device")) {
      export_kernels(values, inputs, !is_plan, out);
    } else if (format == "torchtitan") {
      export_torchtitan(values, inputs, out.string());
    } else if (format == "chakra") {
      export_chakra(values, inputs, !is_plan, out.string());
    } else {
      write_files(values, {{out, draw(format, inputs, !is_plan)}});
    }
  }
  return ExitCode::kOk;
}

int run_export_verb(int argc, char** argv) {
  const Verb verb{
      "export", "Writes a plan's step in the form of another program, or as a picture.",
      "frazil export --to pytorch-csv|chakra|chrome|svg|html --out FILE\n"
      "         --stages N --micro-batches N --schedule NAME [--chunks N]\n"
      "   or: frazil export --to pytorch-csv|torchtitan|chakra|chrome|svg|html --out FILE\n"
      "         --plan FILE --profile FILE --cluster FILE"};
  return run_verb(verb, argc, argv, describe_flags(), export_verb);
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_export_verb(argc, argv); }
