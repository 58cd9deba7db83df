#pragma once
// clang-format off
// What a run was begun with, kept in its folder so that it can go on without being told again:
//   inputs/run.json       run configuration, with the seed and the freezing that flags chose
//   inputs/masks.jsonl    the trace that it replays, if it replays one
//   inputs/model.json     model profile
//   inputs/cluster.json   cluster
//   inputs/plan.json      plan to begin with, if one was given
//   inputs/flags.json     {"format": "frazil.train_flags", "version": 1, "device": "cpu",
//                          "keep_plan": false, "schedules": ["1f1b"], "steps": [60], "asked_steps": 60, "checkpoint_every": 30}
// "steps" are the lengths of the run, one after another: the first as it began, each further one for
// more steps that it was given when it had ended. "asked_steps" is the --steps that it was begun with
// (0: none was given), "checkpoint_every" 0 for a run without checkpoints. "schedules",
// "max_replicas" and "planner" stand only where the run was begun with these flags.
// clang-format on

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "exec/config/run_config.h"
#include "planner/named/run_plan.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct StoredRun {
  RunConfig config;
  ModelProfile profile;
  Cluster cluster;
  std::optional<Plan> plan;
  std::string device = "cpu";
  bool keep_plan = false;
  std::vector<ScheduleKind> schedules;  // empty: all
  int max_replicas = 0;                 // 0: any number
  std::optional<NamedPlanner> planner;  // none: ours
  std::vector<Step> lengths;            // never empty, each larger than the one before
  Step asked_steps = 0;
  Step checkpoint_every = 0;
};

// Writes the files, all or none, in place of earlier ones. Throws InputError.
void write_stored_run(const StoredRun& run, const std::filesystem::path& folder);
// Returns none if the folder has no flags.json. Throws InputError for files that are not as they
// were written.
std::optional<StoredRun> read_stored_run(const std::filesystem::path& folder);
// Returns the place of the stored plan, for refusals.
std::filesystem::path stored_plan_file(const std::filesystem::path& folder);

}  // namespace frazil
