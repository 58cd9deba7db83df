#include "planner/verbs/import_sailor.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "planner/actions/validate_plan.h"
#include "planner/interop/sailor_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/verbs/command_line.h"
#include "profiles/cluster_json.h"
#include "profiles/import/sailor_folder.h"
#include "profiles/model_profile_json.h"
#include "profiles/quantity_text.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

struct ImportedPlan {
  SailorPlan source;
  ModelProfile profile;
  Plan plan;
  Cluster cluster;
};

ImportedPlan read_plan_with_measurements(const std::string& file, const std::string& folder) {
  const SailorFolder data = read_sailor_measurements(folder);
  ImportedPlan read;
  read.source = parse_sailor_plan(read_text_file(file), file);
  refuse_other_layers(read.source, data.config.layers, file);
  if (read.source.gpu != data.gpu) {
    throw InputError(file, 0, fmt::format("GPU \"{}\"", to_one_line(read.source.gpu)),
                     fmt::format("\"{}\", whose times were measured", data.gpu));
  }
  read.profile =
      make_sailor_profile(data.config, data.times, data.sizes, read.source.degree, folder);
  read.plan = make_sailor_plan(read.source, read.profile);
  read.cluster = make_sailor_cluster(read.source, read.profile, data.links);
  validate(read.cluster, folder);
  validate(read.plan, {read.profile, read.cluster}, file);
  return read;
}

std::string to_seconds(const std::optional<Duration>& time) {
  return time ? to_text(*time) : "not measured";
}

std::string print_plan(const ImportedPlan& read) {
  const SailorPlan& source = read.source;
  return fmt::format(
      "{}\ntensor parallelism {} on {} is in the profile: a device is one of its GPUs\nmeasured "
      "iteration {}, of it reducing gradients {}, peak memory {}\n"
      "note: memory limits are not in its files: devices have as much as can be told\n"
      "note: times of small micro-batches hold what launching takes while profiled; frazil "
      "reproduce "
      "sailor takes straight lines over the size, and stages that stand still for messages\n",
      summarize(read.plan), source.degree, source.gpu, to_seconds(source.iteration),
      to_seconds(source.reduction),
      source.peak_memory ? to_text(*source.peak_memory) : "not measured");
}

std::string plan_json(const ImportedPlan& read) {
  const SailorPlan& source = read.source;
  nlohmann::ordered_json answer = {{"model", read.profile.model},
                                   {"model_hash", read.plan.model_hash},
                                   {"gpu", source.gpu},
                                   {"tensor_parallelism", source.degree},
                                   {"stages", source.stages.size()},
                                   {"replicas", source.replicas},
                                   {"micro_batch_size", source.micro_batch_size},
                                   {"batch_size", source.batch_size}};
  if (source.iteration) answer["measured_iteration_ns"] = source.iteration->count();
  if (source.reduction) answer["measured_reduction_ns"] = source.reduction->count();
  if (source.peak_memory) answer["measured_peak_bytes"] = source.peak_memory->count;
  return answer.dump(2) + "\n";
}

}  // namespace

void describe_sailor_import(po::options_description& flags) {
  flags.add_options()("data", text_value("FOLDER"),
                      "sailor: folder with times, sizes and bandwidths");
}

ExitCode import_sailor(const Flags& values, const std::vector<std::string>& files) {
  refuse_together(values, "import sailor",
                  {"micro-batch-size", "micro-batches", "model", "layer-ranges", "join-loss",
                   "optimizer", "plan", "profile", "cluster", "legacy"});
  if (files.size() != 1) refuse_flags(fmt::format("{} plans", files.size()), "one");
  const std::string folder = required_text(values, "data");
  const std::filesystem::path out = required_text(values, "out");
  refuse_folder_place({"--out", out});
  const std::filesystem::path profile_file = out / "profile.json";
  const std::filesystem::path plan_file = out / "plan.json";
  const std::filesystem::path cluster_file = out / "cluster.json";
  refuse_same_files({{"the plan of Sailor", files.front()}},
                    {{"--out", profile_file}, {"--out", plan_file}, {"--out", cluster_file}});
  const ImportedPlan read = read_plan_with_measurements(files.front(), folder);
  const auto write = [&] {
    write_text_files({{profile_file, to_json(read.profile)},
                      {plan_file, to_json(read.plan)},
                      {cluster_file, to_json(read.cluster)}});
  };
  write_and_answer(write, is_set(values, "json") ? plan_json(read) : print_plan(read));
  return ExitCode::kOk;
}

}  // namespace frazil
