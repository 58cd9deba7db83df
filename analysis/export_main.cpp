// frazil export: a plan's step in the form of another program, or as a picture.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "analysis/gantt.h"
#include "planner/chakra.h"
#include "planner/command_line.h"
#include "planner/plan_json.h"
#include "planner/pytorch_csv.h"
#include "planner/schedule_menu.h"
#include "planner/schedules.h"
#include "planner/what_if.h"
#include "profiles/cluster_json.h"
#include "profiles/model_profile_json.h"
#include "profiles/quantity_text.h"
#include "profiles/text_file.h"
#include "traces/chrome_trace.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

constexpr int kMost = 1'000'000;

[[noreturn]] void refuse(const std::string& found, const std::string& expected) {
  throw InputError("command line", 0, found, expected);
}

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  const auto text = [] { return po::value<std::string>(); };
  flags.add_options()                                                                        //
      ("stages", text(), "what-if: devices")                                                 //
      ("micro-batches", text(), "what-if: micro-batches of a step")                          //
      ("schedule", text(), "what-if: a schedule's name, as frazil simulate lists them")      //
      ("chunks", text(), "what-if: chunks of the model per device, default the schedule's")  //
      ("forward", text(), "what-if: time of F, default 1ms")                                 //
      ("backward-input", text(), "what-if: time of I, default 1ms")                          //
      ("backward-weight", text(), "what-if: time of W, default 1ms")                         //
      ("hop", text(), "what-if: latency between devices, default 0ns")                       //
      ("plan", text(), "plan to export")                                                     //
      ("profile", text(), "profile of its model")                                            //
      ("cluster", text(), "its cluster")                                                     //
      ("to", text(),
       "pytorch-csv: for torch.distributed.pipelining; chakra: for ASTRA-sim; chrome: for "
       "Perfetto; svg, html: a Gantt picture with memory over time")                         //
      ("comms", po::bool_switch(), "with messages and reductions, PyTorch's compute_comms")  //
      ("out", text(),
       "file to write; of several pipelines one file each, numbered; chakra: OUT.0.et, OUT.1.et, "
       "... by device, and OUT.groups.json where collectives run over some of the devices");
  return flags;
}

const std::string& required(const po::variables_map& values, const char* flag) {
  if (values.count(flag) == 0) refuse(fmt::format("no --{}", flag), "it to be given");
  return values[flag].as<std::string>();
}

Duration time_or(const po::variables_map& values, const char* flag, Duration otherwise) {
  if (values.count(flag) == 0) return otherwise;
  return parse_duration(values[flag].as<std::string>(), std::string("--") + flag);
}

WhatIfInputs read_what_if(const po::variables_map& values) {
  for (const char* other : {"profile", "cluster"}) {
    if (values.count(other) > 0) {
      refuse(fmt::format("--{} with --stages", other), "one or the other");
    }
  }
  constexpr Duration kOneAction{1'000'000};
  WhatIf what_if;
  what_if.stages = checked_flag("--stages", required(values, "stages"), 1, kMost);
  what_if.micro_batches =
      checked_flag("--micro-batches", required(values, "micro-batches"), 1, kMost);
  const std::string& name = required(values, "schedule");
  const auto kind = find_schedule(name);
  if (!kind) refuse("--schedule " + name, "a name that frazil simulate --schedule help lists");
  what_if.schedule = *kind;
  if (values.count("chunks") > 0) {
    what_if.chunks = checked_flag("--chunks", values["chunks"].as<std::string>(), 1, kMost);
  }
  what_if.forward = {time_or(values, "forward", kOneAction)};
  what_if.backward_input = {time_or(values, "backward-input", kOneAction)};
  what_if.backward_weight = {time_or(values, "backward-weight", kOneAction)};
  what_if.hop = time_or(values, "hop", Duration{0});
  return make_what_if(what_if);
}

WhatIfInputs read_files(const po::variables_map& values) {
  for (const char* other : {"stages", "micro-batches", "schedule", "chunks", "forward",
                            "backward-input", "backward-weight", "hop"}) {
    if (values.count(other) > 0) refuse(fmt::format("--{} with --plan", other), "one or the other");
  }
  const std::string& file = required(values, "plan");
  WhatIfInputs inputs{read_model_profile(required(values, "profile")),
                      read_cluster(required(values, "cluster")), read_plan(file)};
  validate(inputs.plan, inputs.profile, inputs.cluster, file);
  return inputs;
}

// "schedule.csv" of pipeline 1 of several is "schedule.1.csv".
std::filesystem::path name_file(const std::filesystem::path& out, std::size_t pipeline,
                                std::size_t pipelines) {
  if (pipelines == 1) return out;
  std::filesystem::path numbered = out;
  return numbered.replace_extension(fmt::format("{}{}", pipeline, out.extension().string()));
}

void export_pytorch(const po::variables_map& values, const WhatIfInputs& inputs,
                    const std::filesystem::path& out) {
  const auto& [profile, cluster, plan] = inputs;
  const PlanCosts costs{profile, cluster};
  const Schedule compute = make_schedule(plan, static_cast<int>(cluster.devices.size()), &costs);
  // PyTorch asks a split backward for its I everywhere, also where no input wants a gradient.
  Activity activity = find_activity(profile, plan.mask);
  for (LayerActivity& layer : activity.layers) layer.input_gradient |= layer.weight_gradient;
  const Schedule completed = complete_schedule(compute, plan, profile, activity);
  const std::vector<std::string> texts =
      to_pytorch_csv(completed, values["comms"].as<bool>() ? PytorchDialect::kComputeComms
                                                           : PytorchDialect::kComputeOnly);
  for (std::size_t pipeline = 0; pipeline < texts.size(); ++pipeline) {
    write_text_file(name_file(out, pipeline, texts.size()), texts[pipeline]);
  }
}

SimulatedStep simulate_inputs(const WhatIfInputs& inputs, bool is_what_if) {
  return is_what_if ? simulate_what_if(inputs)
                    : simulate_step(inputs.plan, inputs.profile, inputs.cluster);
}

// All of them or none: each is whole beside its place before the first takes it.
void write_files(const std::vector<std::pair<std::filesystem::path, std::string>>& files) {
  namespace fs = std::filesystem;
  const auto beside = [](fs::path path) { return path += ".part"; };
  for (const auto& [path, text] : files) {
    if (fs::is_directory(path)) {
      throw InputError(path.string(), 0, "a folder", "a place for a file");
    }
  }
  try {
    for (const auto& [path, text] : files) write_text_file(beside(path), text);
  } catch (...) {
    std::error_code ignored;
    for (const auto& [path, text] : files) fs::remove(beside(path), ignored);
    throw;
  }
  for (const auto& [path, text] : files) fs::rename(beside(path), path);
}

void export_chakra(const WhatIfInputs& inputs, bool is_what_if, const std::string& prefix) {
  const auto& [profile, cluster, plan] = inputs;
  ChakraTraces traces = to_chakra(simulate_inputs(inputs, is_what_if), plan, profile, cluster);
  std::vector<std::pair<std::filesystem::path, std::string>> files;
  for (std::string& trace : traces.files) {
    files.emplace_back(fmt::format("{}.{}.et", prefix, files.size()), std::move(trace));
  }
  if (!traces.groups.empty()) files.emplace_back(prefix + ".groups.json", traces.groups);
  write_files(files);
}

std::string draw(const std::string& format, const WhatIfInputs& inputs, bool is_what_if) {
  const SimulatedStep step = simulate_inputs(inputs, is_what_if);
  if (format == "chrome") {
    const Timeline timeline =
        summarize(step, static_cast<int>(inputs.cluster.devices.size())).timeline;
    return to_chrome_json({{"predicted", &timeline}});
  }
  const auto* named = std::get_if<NamedSchedule>(&inputs.plan.schedule);
  const std::string what_if =
      named == nullptr
          ? ""
          : fmt::format("{} on {} devices, {} micro-batches", schedule_name(named->kind),
                        inputs.cluster.devices.size(), inputs.plan.batch_size);
  const GanttInput input{.title = is_what_if ? what_if : summarize(inputs.plan),
                         .step = &step,
                         .profile = &inputs.profile,
                         .cluster = &inputs.cluster,
                         .counts_chunks = is_what_if};
  return format == "svg" ? gantt_svg(input) : gantt_html(input);
}

ExitCode export_verb(const po::variables_map& values) {
  constexpr std::array<std::string_view, 5> kFormats = {"pytorch-csv", "chakra", "chrome", "svg",
                                                        "html"};
  const std::string& format = required(values, "to");
  if (std::find(kFormats.begin(), kFormats.end(), format) == kFormats.end()) {
    refuse("--to " + format, fmt::format("{}", fmt::join(kFormats, ", ")));
  }
  const std::filesystem::path out = required(values, "out");
  const bool is_plan = values.count("plan") > 0;
  if (!is_plan && values.count("stages") == 0) {
    refuse("neither --plan nor --stages", "one of them");
  }
  const WhatIfInputs inputs = is_plan ? read_files(values) : read_what_if(values);
  if (format == "pytorch-csv") {
    export_pytorch(values, inputs, out);
  } else {
    if (values["comms"].as<bool>()) refuse("--comms with --to " + format, "pytorch-csv");
    if (format == "chakra") {
      export_chakra(inputs, !is_plan, out.string());
    } else {
      write_text_file(out, draw(format, inputs, !is_plan));
    }
  }
  return ExitCode::kOk;
}

int run_export_verb(int argc, char** argv) {
  const Verb verb{"export", "Writes a plan's step in the form of another program, or as a picture.",
                  "frazil export --to pytorch-csv|chakra|chrome|svg|html --out FILE\n"
                  "         --stages N --micro-batches N --schedule NAME [--chunks N]\n"
                  "   or: frazil export --to pytorch-csv|chakra|chrome|svg|html --out FILE\n"
                  "         --plan FILE --profile FILE --cluster FILE"};
  return run_verb(verb, argc, argv, describe_flags(), export_verb);
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_export_verb(argc, argv); }
