// frazil export: a schedule in the form of another program.

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "planner/command_line.h"
#include "planner/plan_json.h"
#include "planner/pytorch_csv.h"
#include "planner/schedule_menu.h"
#include "planner/schedules.h"
#include "planner/what_if.h"
#include "profiles/cluster_json.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"

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
      ("stages", text(), "what-if: devices, one stage each; all actions equally long")       //
      ("micro-batches", text(), "what-if: micro-batches of a step")                          //
      ("schedule", text(), "what-if: a schedule's name, as frazil simulate lists them")      //
      ("chunks", text(), "what-if: chunks of the model per device, default the schedule's")  //
      ("plan", text(), "plan to export")                                                     //
      ("profile", text(), "profile of its model")                                            //
      ("cluster", text(), "its cluster")                                                     //
      ("to", text(), "pytorch-csv: for torch.distributed.pipelining")                        //
      ("comms", po::bool_switch(), "with messages and reductions, PyTorch's compute_comms")  //
      ("out", text(), "file to write; of several pipelines one file each, numbered");
  return flags;
}

const std::string& required(const po::variables_map& values, const char* flag) {
  if (values.count(flag) == 0) refuse(fmt::format("no --{}", flag), "it to be given");
  return values[flag].as<std::string>();
}

WhatIfInputs read_what_if(const po::variables_map& values) {
  for (const char* other : {"profile", "cluster"}) {
    if (values.count(other) > 0)
      refuse(fmt::format("--{} with --stages", other), "one or the other");
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
  what_if.forward = what_if.backward_input = what_if.backward_weight = {kOneAction};
  return make_what_if(what_if);
}

WhatIfInputs read_files(const po::variables_map& values) {
  for (const char* other : {"stages", "micro-batches", "schedule", "chunks"}) {
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

ExitCode export_verb(const po::variables_map& values) {
  const std::string& format = required(values, "to");
  if (format != "pytorch-csv") refuse("--to " + format, "pytorch-csv");
  const std::filesystem::path out = required(values, "out");
  if (values.count("plan") == 0 && values.count("stages") == 0) {
    refuse("neither --plan nor --stages", "one of them");
  }
  const auto [profile, cluster, plan] =
      values.count("plan") > 0 ? read_files(values) : read_what_if(values);
  const PlanCosts costs{profile, cluster};
  const Schedule compute = make_schedule(plan, static_cast<int>(cluster.devices.size()), &costs);
  const Schedule completed =
      complete_schedule(compute, plan, profile, find_activity(profile, plan.mask));
  const std::vector<std::string> texts =
      to_pytorch_csv(completed, values["comms"].as<bool>() ? PytorchDialect::kComputeComms
                                                           : PytorchDialect::kComputeOnly);
  for (std::size_t pipeline = 0; pipeline < texts.size(); ++pipeline) {
    write_text_file(name_file(out, pipeline, texts.size()), texts[pipeline]);
  }
  return ExitCode::kOk;
}

int run_export_verb(int argc, char** argv) {
  const Verb verb{"export", "Writes a schedule in the form of another program.",
                  "frazil export --to pytorch-csv [--comms] --out FILE\n"
                  "         --stages N --micro-batches N --schedule NAME [--chunks N]\n"
                  "   or: frazil export --to pytorch-csv [--comms] --out FILE\n"
                  "         --plan FILE --profile FILE --cluster FILE"};
  return run_verb(verb, argc, argv, describe_flags(), export_verb);
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_export_verb(argc, argv); }
