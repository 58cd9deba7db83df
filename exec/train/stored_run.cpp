#include "exec/train/stored_run.h"

#include <nlohmann/json.hpp>
#include <system_error>
#include <variant>

#include "planner/plan/plan_json.h"
#include "planner/plan/schedule_facts.h"
#include "profiles/cluster_json.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "frazil.train_flags";
constexpr const char* kMasks = "masks.jsonl";
constexpr std::int64_t kMostReplicas = 1'000'000;

fs::path inputs_of(const fs::path& folder) { return folder / "inputs"; }

std::string flags_text(const StoredRun& run) {
  nlohmann::ordered_json flags{{"format", kFormat},
                               {"version", 1},
                               {"device", run.device},
                               {"keep_plan", run.keep_plan},
                               {"steps", run.lengths},
                               {"asked_steps", run.asked_steps},
                               {"checkpoint_every", run.checkpoint_every}};
  for (const ScheduleKind kind : run.schedules) flags["schedules"].push_back(schedule_name(kind));
  if (run.max_replicas > 0) flags["max_replicas"] = run.max_replicas;
  if (run.planner) flags["planner"] = planner_name(*run.planner);
  return flags.dump(2) + "\n";
}

void read_flags(const fs::path& path, StoredRun& run) {
  JsonFields fields(parse_json(read_text_file(path), path.string()));
  expect_format(fields, kFormat, 1);
  run.device = fields.required("device").text();
  run.keep_plan = fields.required("keep_plan").boolean();
  if (const auto schedules = fields.optional("schedules")) {
    for (const JsonCursor& name : schedules->items()) {
      const auto kind = find_schedule(name.text());
      if (!kind) name.fail("`" + name.text() + "`", "the name of a schedule");
      run.schedules.push_back(*kind);
    }
  }
  if (const auto most = fields.optional("max_replicas")) {
    run.max_replicas = static_cast<int>(most->integer(1, kMostReplicas));
  }
  if (const auto name = fields.optional("planner")) {
    run.planner = find_planner(name->text());
    if (!run.planner || !leads_runs(*run.planner)) {
      name->fail("`" + name->text() + "`", "a planner that runs can follow");
    }
  }
  const JsonCursor steps = fields.required("steps");
  for (const JsonCursor& length : steps.items()) {
    const Step least = run.lengths.empty() ? 1 : run.lengths.back() + 1;
    run.lengths.push_back(length.integer(least, kLargestQuantity));
  }
  if (run.lengths.empty()) steps.fail("an empty list", "the length of the run");
  run.asked_steps = fields.required("asked_steps").integer(0, kLargestQuantity);
  run.checkpoint_every = fields.required("checkpoint_every").integer(0, kLargestQuantity);
  fields.finish();
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

}  // namespace

fs::path stored_plan_file(const fs::path& folder) { return inputs_of(folder) / "plan.json"; }

void write_stored_run(const StoredRun& run, const fs::path& folder) {
  ENSURE(!run.lengths.empty(), "a run has a length");
  const fs::path inputs = inputs_of(folder);
  RunConfig config = run.config;
  std::vector<NewFile> files;
  if (auto* const trace = std::get_if<TraceFreeze>(&config.freeze.policy)) {
    files.push_back({inputs / kMasks, read_text_file(trace->path)});
    trace->path = kMasks;
  }
  files.push_back({inputs / "run.json", to_json(config)});
  files.push_back({inputs / "model.json", to_json(run.profile)});
  files.push_back({inputs / "cluster.json", to_json(run.cluster)});
  if (run.plan) files.push_back({stored_plan_file(folder), to_json(*run.plan)});
  files.push_back({inputs / "flags.json", flags_text(run)});
  write_text_files(files);
  std::error_code error;
  if (!run.plan) fs::remove(stored_plan_file(folder), error);
}

std::optional<StoredRun> read_stored_run(const fs::path& folder) {
  const fs::path inputs = inputs_of(folder);
  if (!is_there(inputs / "flags.json")) return std::nullopt;
  StoredRun run;
  read_flags(inputs / "flags.json", run);
  run.config = read_run_config(inputs / "run.json");
  run.profile = read_model_profile(inputs / "model.json");
  run.cluster = read_cluster(inputs / "cluster.json");
  if (is_there(stored_plan_file(folder))) run.plan = read_plan(stored_plan_file(folder));
  return run;
}

}  // namespace frazil
