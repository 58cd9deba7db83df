#include "exec/verbs/train_request.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "exec/config/configured_run.h"
#include "exec/train/trainer.h"
#include "exec/verbs/check_inputs.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/plan/plan_json.h"
#include "planner/verbs/plan_options.h"
#include "profiles/cluster_json.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/json_lines.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr int kMostSteps = 1'000'000'000;  // that may be asked for

// Puts what --no-freeze and --freeze name in the place of the run's own policy.
void choose_freezing(const Flags& flags, RunConfig& config) {
  const bool none = is_set(flags, "no-freeze");
  if (none) config.freeze = {};
  const auto given = optional_text(flags, "freeze");
  if (!given) return;
  if (none) refuse_flags("--freeze beside --no-freeze", "one of the two");
  const bool is_json = given->starts_with('{');
  const fs::path file = is_json ? "--freeze" : *given;
  const JsonCursor value = parse_json(is_json ? *given : read_text_file(file), file.string());
  config.freeze = parse_freeze(value, config.model, absolute(file).parent_path());
}

// Puts the file of --init-from in the place of the run's own.
void choose_start(const Flags& flags, RunConfig& config) {
  const auto given = optional_text(flags, "init-from");
  if (!given) return;
  if (given->empty()) refuse_flags("an empty --init-from", "a file of weights");
  config.init_from = fs::absolute(*given).lexically_normal().string();
}

NamedPlanner read_planner(const std::string& name) {
  const auto planner = find_planner(name);
  if (!planner) (void)known_name("--planner", name, list_leading_planners());
  if (leads_runs(*planner)) return *planner;
  refuse_flags("--planner " + name + ", whose plans share micro-batches by samples",
               "one that a run can follow: " + list_names(list_leading_planners()));
}

// Refuses what another system's planner leaves nothing to say about.
void refuse_beside_planner(const TrainRequest& request) {
  if (!request.stored.planner) return;
  const std::string flag = "--planner " + std::string(planner_name(*request.stored.planner));
  if (!request.stored.schedules.empty()) {
    refuse_flags(flag + " beside --schedules", "one of the two: it has a schedule of its own");
  }
  if (!request.options.elastic) {
    refuse_flags(flag + " beside --keep-plan", "one of the two: it changes plans");
  }
  if (request.stored.config.batch_growth != BatchGrowth::kNone) {
    throw InputError(request.run_file, 0, "a batch that grows with the pipelines, with " + flag,
                     "a batch that stays");
  }
}

// Puts the inputs that flags name in the place of those that are stored.
void read_inputs(const Flags& flags, StoredRun& stored, bool is_stored) {
  if (!is_stored || flags.count("run") > 0)
    stored.config = read_run_config(required_text(flags, "run"));
  choose_seed(flags, stored.config);
  choose_freezing(flags, stored.config);
  choose_start(flags, stored.config);
  if (const auto device = optional_text(flags, "device")) stored.device = *device;
  stored.keep_plan |= is_set(flags, "keep-plan");
  if (const auto name = optional_text(flags, "planner")) stored.planner = read_planner(*name);
  stored.max_replicas = integer_or(flags, "max-replicas", stored.max_replicas, 1, kMostCounted);
  if (flags.count("schedules") > 0) {
    refuse_order_search(flags, "train");
    stored.schedules = read_schedules(flags);
  }
  const auto profile =
      is_stored ? optional_text(flags, "profile") : required_text(flags, "profile");
  if (profile) stored.profile = read_model_profile(*profile);
  const auto cluster =
      is_stored ? optional_text(flags, "cluster") : required_text(flags, "cluster");
  if (cluster) {
    stored.cluster = read_cluster(*cluster);
    stored.plan.reset();  // a plan is one for its cluster
  }
  if (const auto plan = optional_text(flags, "plan")) stored.plan = read_plan(*plan);
}

[[noreturn]] void refuse_fewer(Step asked, const std::vector<Step>& lengths, const FoundRun& run) {
  const std::string least = std::to_string(lengths.back());
  const std::string steps = lengths.size() < 2
                                ? "a run's steps"
                                : "steps from " + std::to_string(lengths.end()[-2]) + " on";
  const std::string length =
      lengths.size() < 2 ? "the length that it is begun with" : "the length " + least;
  refuse_flags(
      "--steps " + std::to_string(asked) + " for " + describe(run),
      least + " or more: learning rate and freezing of " + steps + " follow from " + length);
}

// Puts this length, which the run never had, behind the others. A longer one of which no step was
// done is forgotten. Throws InputError for fewer steps than those that were done follow from, which
// would be another run.
void add_length(Step asked, const FoundRun& run, std::vector<Step>& lengths) {
  const Step done = run.done.value_or(lengths.back());
  while (lengths.size() > 1 && asked < lengths.back() && done <= lengths.end()[-2]) {
    lengths.pop_back();
  }
  if (asked < lengths.back()) refuse_fewer(asked, lengths, run);
  lengths.push_back(asked);
}

// Makes `lengths` those of the run that is asked for. Lengths of a run that is not resumed are none
// yet. Throws InputError as add_length() does.
void choose_length(const Flags& flags, const RunFolder* folder, TrainRequest& request) {
  std::vector<Step>& lengths = request.stored.lengths;
  TrainOptions& options = request.options;
  const Step asked = integer_or(flags, "steps", 0, 1, kMostSteps);
  options.max_steps = asked;
  if (lengths.empty()) {
    request.stored.asked_steps = asked;
    lengths = {count_steps(options, request.data)};
    return;
  }
  const bool is_known = std::find(lengths.begin(), lengths.end(), asked) != lengths.end();
  // The epochs may have cut short what was asked for as the run began; to ask for it again is no
  // news.
  const bool is_as_before = asked == 0 || (asked == request.stored.asked_steps && !is_known);
  const Step length = is_as_before ? lengths.back() : asked;
  const auto known = std::find(lengths.begin(), lengths.end(), length);
  if (known != lengths.end()) {
    lengths.erase(known + 1, lengths.end());
  } else {
    add_length(length, *folder->found(), lengths);
  }
  options.max_steps = length;
  if (lengths.size() < 2) return;
  options.extension = {.begun_with = lengths.front(), .ended_at = lengths.end()[-2]};
}

void choose_durable(const Flags& flags, const RunFolder* folder, TrainRequest& request) {
  Step& every = request.stored.checkpoint_every;
  every = integer_or(flags, "checkpoint-every", static_cast<int>(every), 1, kMostSteps);
  const bool resume = is_set(flags, "resume");
  if (every == 0 && resume) refuse_flags("no --checkpoint-every", "it to be given");
  if (every == 0) return;
  if (folder == nullptr) refuse_flags("--checkpoint-every without --out", "both");
  DurableOptions durable;
  durable.folder = folder->path() / "checkpoints";
  durable.every = every;
  durable.resume = resume;
  durable.accept_other_kernels = is_set(flags, "accept-other-kernels");
  request.options.durable = durable;
}

// Reads what the run was begun with. Returns none for a run that was begun by a version that kept
// no flags: then all flags are to be given.
std::optional<StoredRun> read_to_resume(const RunFolder& folder) {
  std::optional<StoredRun> stored;
  if (folder.found()) stored = read_stored_run(folder.path());
  folder.refuse_to_resume(stored && stored->checkpoint_every > 0);
  return stored;
}

}  // namespace

std::optional<fs::path> find_out(const Flags& flags) {
  const bool resume = is_set(flags, "resume");
  const std::vector<std::string> words = text_list(flags, kTrainWords);
  const auto out = optional_text(flags, "out");
  if (!words.empty() && !resume) refuse_flags("`" + words.front() + "`", "only flags");
  if (words.size() > 1) refuse_flags("`" + words[1] + "`", "one folder");
  if (!words.empty() && out) refuse_flags("two folders, `" + words[0] + "` and --out", "one");
  if (resume && words.empty() && !out) refuse_flags("--resume without a folder", "--resume FOLDER");
  if (!resume && is_set(flags, "accept-other-kernels")) {
    refuse_flags("--accept-other-kernels without --resume", "both");
  }
  if (resume && is_set(flags, "force")) refuse_flags("--force beside --resume", "one of the two");
  const std::optional<std::string> place = words.empty() ? out : words[0];
  if (!place) return std::nullopt;
  if (place->empty()) refuse_flags("an empty --out", "the name of a folder");
  return fs::path(*place);
}

TrainRequest read_request(const Flags& flags, const std::string& command, const RunFolder* folder) {
  TrainRequest request;
  const bool resume = is_set(flags, "resume");
  std::optional<StoredRun> stored;
  if (resume) stored = read_to_resume(*folder);
  const bool is_stored = stored.has_value();
  if (is_stored) request.stored = std::move(*stored);
  read_inputs(flags, request.stored, is_stored);
  TrainOptions& options = request.options;
  options.command = command;
  options.config = request.stored.config;
  options.profile = request.stored.profile;
  options.cluster = request.stored.cluster;
  options.plan = request.stored.plan;
  options.schedules = request.stored.schedules;
  options.max_replicas = request.stored.max_replicas;
  options.planner = request.stored.planner;
  options.elastic = !request.stored.keep_plan;
  if (flags.count("switch-time") > 0) {
    options.overhead = {.start = duration_or(flags, "switch-time", Duration{0})};
  }
  options.processors = read_processors(flags, request.stored.device);
  const fs::path inputs = folder != nullptr ? folder->path() / "inputs" : fs::path();
  request.run_file = optional_text(flags, "run").value_or((inputs / "run.json").string());
  options.plan_file = optional_text(flags, "plan").value_or((inputs / "plan.json").string());
  check_profile(options,
                optional_text(flags, "profile").value_or((inputs / "model.json").string()));
  refuse_beside_planner(request);
  check_plan(options);
  check_freezing(options, request.run_file);
  if (folder != nullptr && !resume) {
    refuse_inputs_inside(flags, options.config, folder->path());
    if (!is_set(flags, "force")) folder->refuse_run();
  }
  request.data = load_data(options.config);
  refuse_larger_batch(options.config, request.data, request.run_file);
  refuse_unwatched_guard(options.config, request.run_file);
  choose_length(flags, folder, request);
  choose_durable(flags, folder, request);
  return request;
}

}  // namespace frazil
