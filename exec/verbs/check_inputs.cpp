#include "exec/verbs/check_inputs.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "exec/config/configured_run.h"
#include "exec/run/sample_slices.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/actions/validate_plan.h"
#include "planner/freezing/run_shape.h"
#include "planner/plan/activity.h"
#include "planner/prediction/plan_notation.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "profiles/json_lines.h"

namespace frazil {

namespace fs = std::filesystem;

namespace {

std::string tell_replicas(int count) {
  return std::to_string(count) + (count == 1 ? " pipeline or device" : " pipelines or devices");
}

void check_replicas(const TrainOptions& options) {
  const int replicas = count_replicas(*options.plan);
  if (options.max_replicas == 0 || replicas <= options.max_replicas) return;
  throw InputError(options.plan_file, 0, tell_replicas(replicas) + " of a stage",
                   "at most " + std::to_string(options.max_replicas) + ", as --max-replicas says");
}

// The last loss of a distillation is a block without parameters, which masks leave active.
void refuse_idle_mask(const ModelProfile& profile, const FreezeMask& mask,
                      const std::string& file) {
  const std::vector<LayerActivity> layers = find_activity(profile, mask).layers;
  if (std::any_of(layers.begin(), layers.end(),
                  [](const auto& layer) { return layer.weight_gradient; })) {
    return;
  }
  throw InputError(file, 0, "mask \"" + mask.text() + "\", under which nothing trains",
                   "one that leaves a block with parameters active");
}

}  // namespace

void check_profile(const TrainOptions& options, const std::string& file) {
  const ModelProfile structure = structure_of(options.config);
  if (structure.precision != options.profile.precision) {
    throw InputError(file, 0, "a profile in " + std::string(name_of(options.profile.precision)),
                     "one in " + std::string(name_of(structure.precision)) +
                         ", in which the run computes; frazil profile makes it");
  }
  if (model_hash(structure) == model_hash(options.profile)) return;
  const bool same_name = structure.model == options.profile.model;
  throw InputError(
      file, 0,
      "a profile of model " + options.profile.model + (same_name ? ", but of other layers" : ""),
      "one of the run's model, " + structure.model);
}

void check_plan(const TrainOptions& options) {
  if (!options.plan) return;
  const Plan& plan = *options.plan;
  const RunConfig& config = options.config;
  const std::string& file = options.plan_file;
  validate(plan, {options.profile, options.cluster}, file, lines_of(file));
  if (plan.batch_size != config.batch_size || plan.micro_batch_size != config.micro_batch_size) {
    throw InputError(file, 0,
                     "batch " + std::to_string(plan.batch_size) + " in micro-batches of " +
                         std::to_string(plan.micro_batch_size),
                     "the run's, " + std::to_string(config.batch_size) + " in " +
                         std::to_string(config.micro_batch_size));
  }
  const FreezeMask active = FreezeMask::all_active(plan.mask.blocks());
  if (plan.mask != active) {
    throw InputError(file, 0, "mask " + plan.mask.text(), active.text() + ", as a run begins");
  }
  if (plan.reduction != config.reduction) {
    const bool is_exact = plan.reduction == ReductionMode::kExact;
    throw InputError(file, 0, std::string("reduction ") + (is_exact ? "exact" : "fast"),
                     std::string("the run's, ") + (is_exact ? "fast" : "exact"));
  }
  check_replicas(options);
  (void)make_schedule(plan, static_cast<int>(options.cluster.devices.size()),
                      Setting{options.profile, options.cluster});
  refuse_mixed_slices(make_model(config), options.profile, plan);
}

void check_freezing(const TrainOptions& options, const std::string& file) {
  const int most = shape_run(options.profile, 1, 1, 0).layers();
  const auto check = [&](int layers, const std::string& key) {
    if (layers <= most) return;
    throw InputError(file, 0, json_string(key) + ": " + std::to_string(layers),
                     "at most " + std::to_string(most) +
                         ", the blocks between the first and the last that trains");
  };
  const FreezePolicy& policy = options.config.freeze.policy;
  if (const auto* fixed = std::get_if<StaticFreeze>(&policy)) {
    check(fixed->frozen_layers, "frozen_layers");
    if (fixed->mask) refuse_idle_mask(options.profile, *fixed->mask, file);
  }
  if (const auto* drawn = std::get_if<RandomFreeze>(&policy)) {
    check(drawn->active_layers, "active_layers");
  }
}

void refuse_inputs_inside(const Flags& flags, const RunConfig& config, const fs::path& folder) {
  std::vector<NamedFile> inputs = named_files(flags, {"run", "profile", "cluster", "plan"});
  if (const auto* trace = std::get_if<TraceFreeze>(&config.freeze.policy)) {
    inputs.push_back({"the trace", trace->path});
  }
  if (!config.init_from.empty()) inputs.push_back({"--init-from", config.init_from});
  if (const std::string weights = teacher_weights(config.model); !weights.empty()) {
    inputs.push_back({"\"teacher_weights\"", weights});
  }
  for (const NamedFile& input : inputs) {
    const fs::path place = absolute(input.path).parent_path();
    const std::string name = place.filename().string();
    const bool is_of_run =
        (name.starts_with("phase-") || name == "inputs" || name == "checkpoints") &&
        is_same_file(place.parent_path(), folder);
    if (is_of_run || is_same_file(input.path, folder / "trace.jsonl") ||
        is_same_file(input.path, folder / "weights.safetensors") ||
        is_same_file(input.path, folder / "events.jsonl")) {
      refuse_flags(input.flag + " " + input.path.string() + " inside the run of --out",
                   "a file that this run does not write");
    }
  }
}

}  // namespace frazil
