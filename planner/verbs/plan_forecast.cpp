#include "planner/verbs/plan_forecast.h"

#include <fmt/format.h>

#include "planner/answers/print_trajectory.h"
#include "planner/plan/plan_json.h"
#include "planner/prediction/process_notes.h"
#include "planner/search/rankings/rank_plans.h"
#include "planner/verbs/cluster_flag.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/forecast_file.h"
#include "planner/verbs/plan_options.h"
#include "planner/verbs/store_flags.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

// Names the files of the plans held: if --out is "plan.json", the plan held from step 300 on is in
// "plan.300.json".
std::vector<NewFile> list_held_plans(const PlannedTrajectory& planned, const SearchOptions& search,
                                     const std::filesystem::path& out) {
  std::vector<NewFile> files;
  for (std::size_t k = 0; k < planned.segments.size(); ++k) {
    const std::size_t held = planned.best.states[k];
    if (k > 0 && held == planned.best.states[k - 1]) continue;
    Plan plan = planned.candidates[held];
    plan.mask = planned.segments[k].mask;
    std::filesystem::path file = out;
    file.replace_extension(fmt::format("{}{}", planned.segments[k].step, out.extension().string()));
    files.push_back({std::move(file), to_json(with_question(std::move(plan), search))});
  }
  return files;
}

std::vector<const Plan*> list_held(const PlannedTrajectory& planned) {
  std::vector<const Plan*> held;
  for (const std::size_t state : planned.best.states) held.push_back(&planned.candidates[state]);
  return held;
}

}  // namespace

ExitCode plan_forecast(const Flags& values) {
  refuse_together(
      values, "--forecast",
      {"mask", "top", "planner", "explain", "held", "steps", "effort", "gap", "steps-ahead"});
  if (values.count("noise") > 0) {
    refuse_flags("--noise with --forecast",
                 "none, for plans over a forecast are chosen by their total time alone");
  }
  refuse_order_search(values, "--forecast");
  const auto out = optional_text(values, "out");
  if (out) refuse_folder_place({"--out", *out});
  if (is_set(values, "cache")) {
    refuse_flags("--cache with --forecast", "--cache-memory or --cache-disk, which have a size");
  }
  const ModelProfile profile = read_model_profile(required_text(values, "profile"));
  const Cluster cluster = read_given_cluster(values);
  const std::string file = required_text(values, "forecast");
  const FreezeTrace trace = read_forecast(file, profile);
  SearchOptions search = without_efforts(read_options(values, profile));
  refuse_other_batch(trace, file, search.batch_size);
  TrajectoryOptions options{
      .search = search,
      .plans_per_mask = integer_or(values, "plans-per-mask", 3, 1, kMostCounted),
      .overhead = {.start = duration_or(values, "switch-time", Duration{0})},
      .store = read_store(values),
      .decide_every = integer_or(values, "decide-every", 1, 1, kMostCounted)};
  const Setting setting{profile, cluster};
  const PlannedTrajectory planned =
      plan_trajectory(setting, read_segments(trace, file, setting), options);
  const std::vector<NewFile> files =
      out ? list_held_plans(planned, search, *out) : std::vector<NewFile>{};
  std::vector<NamedFile> outputs;
  outputs.reserve(files.size());
  for (const NewFile& file : files) outputs.push_back({"--out", file.path});
  refuse_overwriting(named_files(values, {"profile", "cluster", "forecast"}), outputs);
  const std::vector<const Plan*> held = list_held(planned);
  write_and_answer([&] { write_text_files(files); },
                   is_set(values, "json")
                       ? with_commit_rounds(trajectory_json(planned), held, cluster)
                       : print_trajectory(planned) + list_commit_rounds(held, cluster));
  return ExitCode::kOk;
}

}  // namespace frazil
