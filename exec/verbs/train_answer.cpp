#include "exec/verbs/train_answer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <system_error>

#include "analysis/tables/table.h"
#include "exec/checkpoint/run_files.h"
#include "exec/measuring/fixed.h"
#include "planner/plan/commit_round.h"
#include "planner/prediction/answer_parts.h"
#include "planner/prediction/process_notes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

std::string hash_text(std::uint64_t hash) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

nlohmann::ordered_json to_answer(const CacheReport& cache) {
  const FeatureCounts& counts = cache.counts;
  nlohmann::ordered_json answer{{"layers", cache.depth},
                                {"bytes_per_sample", cache.bytes_per_sample.count},
                                {"rounds", cache.precision == FeaturePrecision::kBfloat16},
                                {"stored", counts.stored},
                                {"found", counts.found},
                                {"found_at_depth_before", counts.found_before},
                                {"missed", counts.missed},
                                {"lost", counts.lost},
                                {"without_room", counts.turned_away},
                                {"micro_batches", cache.micro_batches.asked},
                                {"micro_batches_without_prefix", cache.micro_batches.whole},
                                {"micro_batches_in_part", cache.micro_batches.parts},
                                {"memory_bytes", cache.in_memory.count},
                                {"disk_bytes", cache.on_disk.count}};
  if (cache.processes.empty()) return answer;
  answer["caches"] = cache.caches;
  answer["processes"] = nlohmann::ordered_json::array();
  for (const auto& [process, own] : cache.processes) {
    answer["processes"].push_back({{"process", process},
                                   {"stored", own.stored},
                                   {"found", own.found},
                                   {"found_at_depth_before", own.found_before},
                                   {"missed", own.missed}});
  }
  return answer;
}

nlohmann::ordered_json to_answer(const TrainResult& result) {
  nlohmann::ordered_json answer;
  if (result.accuracy) answer["accuracy"] = *result.accuracy;
  answer["loss"] = result.loss;
  if (result.validation) {
    if (result.accuracy) answer["validation"]["accuracy"] = result.validation->accuracy;
    answer["validation"]["loss"] = result.validation->loss;
  }
  answer["test_samples"] = result.test_samples;
  if (result.local_statistics) answer["local_statistics"] = true;
  answer["training_time_ns"] = result.training_time.count();
  answer["wall_time_ns"] = result.wall_time.count();
  if (result.first_step > 0) answer["resumed_from_step"] = result.first_step;
  if (result.foreign_cores) answer["foreign_cores"] = *result.foreign_cores;
  answer["state_hash"] = hash_text(result.weight_hash);
  answer["process_peak_resident_bytes"] = result.process_peak_resident.count;
  if (result.cache) answer["cache"] = to_answer(*result.cache);
  if (result.watch) {
    answer["drift"] = {{"windows", result.watch->windows}, {"excluded", result.watch->excluded}};
  }
  if (result.regret) answer["plans"] = nlohmann::ordered_json::parse(regret_json(*result.regret));
  answer["phases"] = nlohmann::ordered_json::array();
  for (const TrainPhase& phase : result.phases) {
    answer["phases"].push_back(
        {{"first_step", phase.first_step},
         {"mask", phase.plan.mask.text()},
         {"plan", summarize(phase.plan)},
         {"stages", phase.plan.pipelines.at(0).stages.size()},
         {"pipelines", phase.plan.pipelines.size()},
         {"devices", list_used_devices(phase.plan).size()},
         {"steps", phase.steps},
         {"predicted_step_ns", phase.predicted_step.count()},
         {"extrapolated", phase.extrapolated},
         {"measured_time_ns", phase.measured_time.count()},
         {"wall_time_ns", phase.wall_time.count()},
         {"predicted_samples_per_second", phase.predicted_samples_per_second()},
         {"measured_samples_per_second", phase.measured_samples_per_second()}});
    if (!phase.in_step.empty()) answer["phases"].back()["in_step"] = phase.in_step;
    if (phase.memory) {
      answer["phases"].back()["memory"] = nlohmann::ordered_json::parse(peaks_json(*phase.memory));
    }
  }
  return answer;
}

// A model that does not classify has a loss alone.
std::string tell_scores(const TrainResult& result) {
  const auto percent = [](double share) { return fixed(100 * share, 2) + " %"; };
  if (!result.accuracy) {
    return "test loss " + fixed(result.loss, 4) +
           (result.validation ? ", validation loss " + fixed(result.validation->loss, 4) : "");
  }
  return "test accuracy " + percent(*result.accuracy) + ", loss " + fixed(result.loss, 4) +
         (result.validation ? ", validation accuracy " + percent(result.validation->accuracy) : "");
}

constexpr const char* kLocalStatistics =
    "local statistics: each slice of a micro-batch normalised by its own\n";

std::string tell_watch(const DriftWatch& watch) {
  return "drift: watched in " + std::to_string(watch.windows) + " windows of steps, " +
         std::to_string(watch.excluded) + " left out beside other programs\n";
}

std::string print_phases(const TrainResult& result) {
  Table table{{"from step", "mask", "plan", "predicted samples/s", "measured samples/s",
               "predicted / measured time"},
              {}};
  for (const TrainPhase& phase : result.phases) {
    const double predicted = phase.predicted_samples_per_second();
    const double measured = phase.measured_samples_per_second();
    table.rows.push_back({std::to_string(phase.first_step), phase.plan.mask.text(),
                          summarize(phase.plan), fixed(predicted, 0), fixed(measured, 0),
                          measured > 0 ? fixed(measured / predicted, 3) : "-"});
  }
  return (table.rows.empty() ? "" : to_text(table)) + tell_scores(result) + ", training time " +
         fixed(seconds(result.training_time), 2) + " s, state " + hash_text(result.weight_hash) +
         "\n" + (result.cache ? to_text(*result.cache) + "\n" : "") +
         (result.local_statistics ? kLocalStatistics : "") +
         (result.watch ? tell_watch(*result.watch) : "") +
         (result.regret ? tell_regret(*result.regret) + "\n" : "") +
         (result.foreign_cores
              ? "other programs kept " + fixed(*result.foreign_cores, 2) + " cores busy meanwhile\n"
              : "");
}

std::vector<const Plan*> list_plans(const TrainResult& result) {
  std::vector<const Plan*> plans;
  for (const TrainPhase& phase : result.phases) plans.push_back(&phase.plan);
  return plans;
}

// Returns why devices waited for each other after each step although their plan has steps ahead,
// and what the predictions rest on that was not measured.
std::string list_notes(const TrainResult& result, const ModelProfile& profile) {
  const bool extrapolated = std::any_of(result.phases.begin(), result.phases.end(),
                                        [](const TrainPhase& phase) { return phase.extrapolated; });
  std::string notes;
  for (const TrainPhase& phase : result.phases) {
    if (phase.in_step.empty()) continue;
    notes += "note: from step " + std::to_string(phase.first_step) + " on " + phase.in_step + "\n";
  }
  return notes + list_flags(profile, extrapolated);
}

// Returns the name of the newest checkpoint, or "".
std::string find_newest(const std::filesystem::path& checkpoints) {
  std::error_code error;
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints, error)) {
    const std::string name = entry.path().filename().string();
    if (parse_checkpoint_name(name)) newest = std::max(newest, name);
  }
  return newest;
}

}  // namespace

std::string print_result(const TrainResult& result, const ModelProfile& profile,
                         const Cluster& cluster) {
  return print_phases(result) + list_notes(result, profile) +
         list_commit_rounds(list_plans(result), cluster);
}

std::string to_json(const TrainResult& result, const Cluster& cluster) {
  nlohmann::ordered_json answer = to_answer(result);
  for (const Plan* plan : list_plans(result)) {
    answer.update(nlohmann::ordered_json::parse(commit_round_json(*plan, cluster)));
  }
  return answer.dump(2) + "\n";
}

std::string tell_stopped(const TrainResult& result, const KeptOfRun& kept, int signal) {
  const std::string step = std::to_string(*result.stopped_at);
  const std::string folder = to_one_line(kept.folder.string());
  std::string text = "stopped by signal " + std::to_string(signal) + " after " + step + " of " +
                     std::to_string(result.trace.steps) + " steps; kept: ";
  if (kept.folder.empty()) return text + "nothing, for want of --out";
  const std::string weights =
      kept.has_weights ? "the weights of these steps, weights.safetensors in " + folder : "";
  if (kept.has_checkpoints) {
    return text + "the checkpoint of step " + step + ", --resume goes on from it" +
           (kept.has_weights ? ", and " + weights : " in " + folder);
  }
  return text + (kept.has_weights ? weights + "," : "no weights") +
         " and no checkpoint to go on from (--checkpoint-every keeps some)";
}

std::string stopped_json(const TrainResult& result) {
  const nlohmann::ordered_json answer{{"stopped_at_step", *result.stopped_at},
                                      {"state_hash", hash_text(result.weight_hash)}};
  return answer.dump(2) + "\n";
}

std::string tell_kept_of_diverged(const std::filesystem::path& folder) {
  const std::string newest = find_newest(folder / "checkpoints");
  if (folder.empty() || newest.empty()) return "; no weights are kept";
  return "; kept: the checkpoint " + to_one_line((folder / "checkpoints" / newest).string());
}

}  // namespace frazil
