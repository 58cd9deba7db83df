// frazil train: trains a model by a plan, re-planning as layers freeze.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/tables/table.h"
#include "exec/checkpoint/stop_signals.h"
#include "exec/config/configured_run.h"
#include "exec/measuring/fixed.h"
#include "exec/train/progress.h"
#include "exec/train/train_files.h"
#include "exec/train/trainer.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/actions/validate_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/prediction/answer_parts.h"
#include "planner/verbs/command_line.h"
#include "profiles/cluster_json.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

constexpr int kMostSteps = 1'000'000'000;  // that may be asked for

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  flags.add_options()                                                                     //
      ("run", text_value("FILE"), "run configuration: model, data, optimizer, freezing")  //
      ("profile", text_value("FILE"), "model profile (frazil profile --out)")             //
      ("cluster", text_value("FILE"), "cluster (frazil profile --cluster-out)")           //
      ("plan", text_value("FILE"),
       "plan to begin with; default: the best of gpipe and 1f1b, of all schedules if none fits")  //
      ("device", text_value("KIND"),
       "what the cluster's devices are here: cpu (default) or cuda")        //
      ("keep-plan", po::bool_switch(), "never re-plan when blocks freeze")  //
      ("no-freeze", po::bool_switch(), "train all blocks to the end")       //
      ("freeze", text_value("FILE"),
       "instead of the run's own \"freeze\": that JSON object itself, or a file that holds it")  //
      ("seed", text_value("N"), "instead of the run's own")                                      //
      ("steps", text_value("N"), "end after so many steps; default: all epochs")                 //
      ("out", text_value("FOLDER"),
       "folder for trace.jsonl, events.jsonl, plans and time lines (for frazil report)")  //
      ("checkpoint-every", text_value("N"),                                               //
       "steps from checkpoint to checkpoint, under the folder of --out; SIGTERM or SIGINT then "
       "end the run after a last one, with exit code 143 or 130")  //
      ("resume", po::bool_switch(),                                //
       "go on with the run of --out from its newest good checkpoint, under any plan and "
       "cluster; steps done again must give the losses recorded, or the exit code is 1")  //
      ("quiet", po::bool_switch(), "no progress, but warnings")                           //
      ("json", po::bool_switch(), "answer in JSON");
  return flags;
}

std::string hash_text(std::uint64_t hash) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

nlohmann::ordered_json to_answer(const TrainResult& result) {
  nlohmann::ordered_json answer;
  answer["accuracy"] = result.accuracy;
  answer["loss"] = result.loss;
  if (result.validation) {
    answer["validation"] = {{"accuracy", result.validation->accuracy},
                            {"loss", result.validation->loss}};
  }
  answer["training_time_ns"] = result.training_time.count();
  if (result.first_step > 0) answer["resumed_from_step"] = result.first_step;
  if (result.foreign_cores) answer["foreign_cores"] = *result.foreign_cores;
  answer["weight_hash"] = hash_text(result.weight_hash);
  answer["process_peak_resident_bytes"] = result.process_peak_resident.count;
  if (result.cache) {
    const FeatureCounts& counts = result.cache->counts;
    answer["cache"] = {{"layers", result.cache->depth},
                       {"bytes_per_sample", result.cache->bytes_per_sample.count},
                       {"rounds", result.cache->precision == FeaturePrecision::kBfloat16},
                       {"stored", counts.stored},
                       {"found", counts.found},
                       {"found_at_depth_before", counts.found_before},
                       {"missed", counts.missed},
                       {"lost", counts.lost},
                       {"without_room", counts.turned_away},
                       {"micro_batches", result.cache->micro_batches.asked},
                       {"micro_batches_without_prefix", result.cache->micro_batches.whole},
                       {"micro_batches_in_part", result.cache->micro_batches.parts},
                       {"memory_bytes", result.cache->in_memory.count},
                       {"disk_bytes", result.cache->on_disk.count}};
  }
  answer["phases"] = nlohmann::ordered_json::array();
  for (const TrainPhase& phase : result.phases) {
    answer["phases"].push_back(
        {{"first_step", phase.first_step},
         {"mask", phase.plan.mask.text()},
         {"plan", summarize(phase.plan)},
         {"stages", phase.plan.pipelines.at(0).stages.size()},
         {"pipelines", phase.plan.pipelines.size()},
         {"steps", phase.steps},
         {"predicted_step_ns", phase.predicted_step.count()},
         {"extrapolated", phase.extrapolated},
         {"measured_time_ns", phase.measured_time.count()},
         {"predicted_samples_per_second", phase.predicted_samples_per_second()},
         {"measured_samples_per_second", phase.measured_samples_per_second()}});
    if (phase.memory) {
      answer["phases"].back()["memory"] = nlohmann::ordered_json::parse(peaks_json(*phase.memory));
    }
  }
  return answer;
}

std::string print_result(const TrainResult& result) {
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
  return to_text(table) + "test accuracy " + fixed(100 * result.accuracy, 2) + " %, loss " +
         fixed(result.loss, 4) +
         (result.validation
              ? ", validation accuracy " + fixed(100 * result.validation->accuracy, 2) + " %"
              : "") +
         ", training time " + fixed(seconds(result.training_time), 2) + " s, weights " +
         hash_text(result.weight_hash) + "\n" +
         (result.cache ? to_text(*result.cache) + "\n" : "") +
         (result.foreign_cores
              ? "other programs kept " + fixed(*result.foreign_cores, 2) + " cores busy meanwhile\n"
              : "");
}

// Returns what the predictions rest on that was not measured.
std::string list_notes(const TrainResult& result, const ModelProfile& profile) {
  const bool extrapolated = std::any_of(result.phases.begin(), result.phases.end(),
                                        [](const TrainPhase& phase) { return phase.extrapolated; });
  return list_flags(profile, extrapolated);
}

// Puts what --no-freeze and --freeze name in the place of the run's own policy.
void choose_freezing(const po::variables_map& flags, RunConfig& config) {
  const bool none = flags["no-freeze"].as<bool>();
  if (none) config.freeze = {};
  const auto given = optional_text(flags, "freeze");
  if (!given) return;
  if (none) refuse_flags("--freeze beside --no-freeze", "one of the two");
  const bool is_json = given->starts_with('{');
  const std::filesystem::path file = is_json ? "--freeze" : *given;
  const JsonCursor value = parse_json(is_json ? *given : read_text_file(file), file.string());
  config.freeze = parse_freeze(value, config.model, absolute(file).parent_path());
}

TrainOptions read_options(const po::variables_map& flags, const std::string& command) {
  TrainOptions options;
  options.command = command;
  options.config = read_config(flags);
  options.processors = read_processors(flags);
  choose_freezing(flags, options.config);
  options.elastic = !flags["keep-plan"].as<bool>();
  const std::string profile_file = required_text(flags, "profile");
  options.profile = read_model_profile(profile_file);
  const ModelProfile structure = structure_of(options.config);
  if (model_hash(structure) != model_hash(options.profile)) {
    const bool same_name = structure.model == options.profile.model;
    throw InputError(
        profile_file, 0,
        "a profile of model " + options.profile.model + (same_name ? ", but of other layers" : ""),
        "one of the run's model, " + structure.model);
  }
  options.cluster = read_cluster(required_text(flags, "cluster"));
  if (const auto path = optional_text(flags, "plan")) {
    options.plan = read_plan(*path);
    options.plan_file = *path;
    validate(*options.plan, {options.profile, options.cluster}, *path, lines_of(*path));
    if (options.plan->batch_size != options.config.batch_size ||
        options.plan->micro_batch_size != options.config.micro_batch_size) {
      throw InputError(*path, 0,
                       "batch " + std::to_string(options.plan->batch_size) +
                           " in micro-batches of " + std::to_string(options.plan->micro_batch_size),
                       "the run's, " + std::to_string(options.config.batch_size) + " in " +
                           std::to_string(options.config.micro_batch_size));
    }
    const FreezeMask active = FreezeMask::all_active(options.plan->mask.blocks());
    if (options.plan->mask != active) {
      throw InputError(*path, 0, "mask " + options.plan->mask.text(),
                       active.text() + ", as a run begins");
    }
    if (options.plan->reduction != options.config.reduction) {
      const bool is_exact = options.plan->reduction == ReductionMode::kExact;
      throw InputError(*path, 0, std::string("reduction ") + (is_exact ? "exact" : "fast"),
                       std::string("the run's, ") + (is_exact ? "fast" : "exact"));
    }
  }
  options.max_steps = integer_or(flags, "steps", 0, 1, kMostSteps);
  return options;
}

// Refuses inputs that the run would overwrite in its folder: trace and log, and all that lies in
// the folder of a phase.
void refuse_run_inside(const po::variables_map& flags, const RunConfig& config,
                       const std::filesystem::path& folder) {
  std::vector<NamedFile> inputs = named_files(flags, {"run", "profile", "cluster", "plan"});
  if (const auto* trace = std::get_if<TraceFreeze>(&config.freeze.policy)) {
    inputs.push_back({"the trace", trace->path});
  }
  for (const NamedFile& input : inputs) {
    const std::filesystem::path place = absolute(input.path).parent_path();
    const bool is_of_phase = place.filename().string().starts_with("phase-") &&
                             is_same_file(place.parent_path(), folder);
    if (is_of_phase || is_same_file(input.path, folder / "trace.jsonl") ||
        is_same_file(input.path, folder / "events.jsonl")) {
      refuse_flags(input.flag + " " + input.path.string() + " inside the run of --out",
                   "a file that this run does not write");
    }
  }
}

std::optional<DurableOptions> read_durable(const po::variables_map& flags) {
  const bool resume = flags["resume"].as<bool>();
  const auto every = optional_integer(flags, "checkpoint-every", 1, kMostSteps);
  if (!every && !resume) return std::nullopt;
  DurableOptions options;
  if (!every) refuse_flags("--resume without --checkpoint-every", "both");
  options.folder = std::filesystem::path(required_text(flags, "out")) / "checkpoints";
  options.every = *every;
  options.resume = resume;
  return options;
}

// Tells that a signal ended the run, with its checkpoint on disk.
ExitCode tell_stopped(const TrainResult& result, const DurableOptions& options, int signal,
                      bool json) {
  if (json) {
    const nlohmann::ordered_json answer{{"stopped_at_step", *result.stopped_at},
                                        {"weight_hash", hash_text(result.weight_hash)}};
    std::printf("%s\n", answer.dump(2).c_str());
  }
  std::fprintf(stderr,
               "frazil train: stopped by signal %d after %lld steps; --resume goes on from %s\n",
               signal, static_cast<long long>(*result.stopped_at),
               to_one_line(options.folder.string()).c_str());
  return static_cast<ExitCode>(128 + signal);
}

ExitCode run_train(const po::variables_map& flags, const std::string& command) {
  if (const auto folder = optional_text(flags, "out")) refuse_folder_place({"--out", *folder});
  TrainOptions options = read_options(flags, command);
  if (const auto folder = optional_text(flags, "out")) {
    refuse_run_inside(flags, options.config, *folder);
    check_output_folder(*folder);
    options.event_log = std::filesystem::path(*folder) / "events.jsonl";
    options.keep_phase = [folder = *folder](const TrainPhase& phase, std::size_t number) {
      write_phase(phase, number, folder);
    };
  }
  options.durable = read_durable(flags);
  const Dataset data = load_data(options.config);
  refuse_larger_batch(options.config, data, required_text(flags, "run"));
  refuse_unwatched_guard(options.config, required_text(flags, "run"));
  const bool quiet = flags["quiet"].as<bool>();
  check_machine("train", options.processors, static_cast<int>(options.cluster.devices.size()),
                quiet);
  std::optional<Progress> progress;
  const auto show = [&](const TrainProgress& now) {
    if (!progress) progress.emplace("train", now.steps * options.config.batch_size, quiet);
    if (quiet && now.is_warning) {
      std::fprintf(stderr, "frazil train: step %lld: %s\n", static_cast<long long>(now.step),
                   to_one_line(now.event).c_str());
    }
    if (!now.event.empty()) {
      progress->say("step " + std::to_string(now.step) + ": " + now.event);
      return;
    }
    progress->update(
        now.step * options.config.batch_size,
        "epoch " + std::to_string(now.epoch) + ", loss " + fixed(now.loss, 3) +
            (now.accuracy ? ", accuracy " + fixed(100 * *now.accuracy, 1) + " %" : "") +
            (now.validation ? ", validation " + fixed(100 * now.validation->accuracy, 1) + " %"
                            : ""));
  };
  std::optional<StopSignals> signals;
  if (options.durable) {
    signals.emplace();
    options.stop = [&] { return signals->received() != 0; };
  }
  const TrainResult result = train(options, data, show);
  progress.reset();
  if (result.stopped_at) {
    return tell_stopped(result, *options.durable, signals->received(), flags["json"].as<bool>());
  }
  const std::string answer = flags["json"].as<bool>()
                                 ? to_answer(result).dump(2) + "\n"
                                 : print_result(result) + list_notes(result, options.profile);
  const auto write = [&] {
    if (const auto folder = optional_text(flags, "out")) write_result(result, *folder);
  };
  write_and_answer(write, answer);
  return ExitCode::kOk;
}

int run_train_verb(int argc, char** argv) {
  const Verb verb{"train", "Trains a model by a plan, re-planning as layers freeze.",
                  "frazil train --run FILE --profile FILE --cluster FILE [--out FOLDER]"};
  const std::string command = command_text(argc, argv);
  return run_verb(verb, argc, argv, describe_flags(), [&](const po::variables_map& flags) {
    return run_with_torch([&] { return run_train(flags, command); });
  });
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_train_verb(argc, argv); }
