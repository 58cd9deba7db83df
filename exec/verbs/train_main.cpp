// frazil train: trains a model by plans that change as layers freeze.

#include <boost/program_options.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "exec/checkpoint/run_kernels.h"
#include "exec/checkpoint/stop_signals.h"
#include "exec/config/configured_run.h"
#include "exec/devices/numerics.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/process_memory.h"
#include "exec/state/parameter_groups.h"
#include "exec/train/plans/elastic_plan.h"
#include "exec/train/progress.h"
#include "exec/train/run_folder.h"
#include "exec/train/train_files.h"
#include "exec/train/trainer.h"
#include "exec/verbs/run_processes.h"
#include "exec/verbs/train_answer.h"
#include "exec/verbs/train_flags.h"
#include "exec/verbs/train_request.h"
#include "exec/verbs/verb_inputs.h"
#include "exec/verbs/weights_keeper.h"
#include "planner/verbs/command_line.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  add_train_flags(flags);
  return flags;
}

// Shows what a run tells while it lasts.
class Telling {
 public:
  Telling(const RunConfig& config, bool quiet) : config_(config), quiet_(quiet) {}

  // Any thread.
  void show(const TrainProgress& now) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!progress_) progress_.emplace("train", now.steps * config_.batch_size, quiet_);
    if (quiet_ && now.is_warning) {
      std::fprintf(stderr, "frazil train: step %lld: %s\n", static_cast<long long>(now.step),
                   to_one_line(now.event).c_str());
    }
    if (!now.event.empty()) {
      progress_->say("step " + std::to_string(now.step) + ": " + now.event);
      return;
    }
    progress_->update(
        now.step * config_.batch_size,
        "epoch " + std::to_string(now.epoch) + ", loss " + fixed(now.loss, 3) +
            (now.accuracy ? ", accuracy " + fixed(100 * *now.accuracy, 1) + " %" : "") +
            (now.accuracy && now.validation
                 ? ", validation " + fixed(100 * now.validation->accuracy, 1) + " %"
                 : ""));
  }
  void end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    progress_.reset();
  }

 private:
  const RunConfig& config_;
  bool quiet_;
  std::mutex mutex_;  // guards the next one
  std::optional<Progress> progress_;
};

// Makes the folder that of this run: until the run is sure to begin, nothing there has changed.
void begin_in(RunFolder& folder, const TrainRequest& request, bool resume) {
  folder.take();
  if (!resume) folder.clear();
  write_stored_run(request.stored, folder.path());
}

void set_files(RunFolder& folder, const TrainRequest& request, bool resume, WeightsKeeper& weights,
               TrainOptions& options) {
  options.event_log = folder.path() / "events.jsonl";
  options.begin = [&folder, &request, resume] { begin_in(folder, request, resume); };
  options.keep_phase = [&folder](const TrainPhase& phase, std::size_t number) {
    write_phase(phase, number, folder.path());
  };
  options.keep_weights = [&](const ModelSpec& model, const std::vector<LayerState>& layers,
                             Step done) {
    weights.keep(folder.path(), options.config, model, layers, done);
  };
}

// Keeps what a stopped run without checkpoints has measured: the log and its phases.
void keep_phases(const TrainResult& result, const fs::path& folder) {
  for (std::size_t i = 0; i < result.phases.size(); ++i) {
    write_phase(result.phases[i], result.first_phase + i, folder);
  }
}

ExitCode end_stopped(const TrainResult& result, const KeptOfRun& kept, int signal, bool json) {
  if (json) print_answer(stopped_json(result));
  std::fprintf(stderr, "frazil train: %s\n", tell_stopped(result, kept, signal).c_str());
  if (!kept.folder.empty() && !kept.has_checkpoints) keep_phases(result, kept.folder);
  return static_cast<ExitCode>(128 + signal);
}

// Trains; a run that keeps checkpoints, and whose processes have taken layers along that nobody
// else held, goes on from the newest checkpoint.
TrainResult train_on(TrainOptions& options, const Dataset& data, Telling& telling,
                     const RunProcesses::Renew& renew) {
  constexpr int kMostTimes = 20;  // what dies again and again does so by itself
  for (int times = 0;; ++times) {
    try {
      return train(options, data, [&](const TrainProgress& now) { telling.show(now); });
    } catch (const LayersLost& lost) {
      if (!renew || !options.durable || times == kMostTimes) throw;
      telling.end();
      std::fprintf(stderr, "frazil train: %s; the run goes on from its newest checkpoint\n",
                   lost.what());
      options.durable->resume = true;
      options.begin = {};
      renew(lost.left);
    }
  }
}

TrainResult train_or_tell(TrainOptions& options, const Dataset& data, Telling& telling,
                          const fs::path& folder, const RunProcesses::Renew& renew) {
  try {
    TrainResult result = train_on(options, data, telling, renew);
    telling.end();
    return result;
  } catch (const Diverged& error) {
    telling.end();
    throw Diverged(error.what() + tell_kept_of_diverged(folder));
  }
}

// A run that had ended before is answered again; its trace, which knows more than its log, stays.
void write_files(const TrainResult& result, const fs::path& folder) {
  remove_half_written(folder);
  if (result.phases.empty() && fs::is_regular_file(folder / "trace.jsonl")) return;
  write_result(result, folder);
}

void warn_of_idle_groups(const RunConfig& config) {
  if (config.optimizer.groups.empty()) return;
  for (const std::string& sentence :
       tell_idle_groups(config.optimizer.groups, make_model(config))) {
    tell_person(sentence);
  }
}

// Asks for what is to be trained. The folder of --out, if there is one, is checked and not yet
// changed.
TrainRequest prepare(const Flags& flags, const std::string& command,
                     std::optional<RunFolder>& folder) {
  if (const auto out = find_out(flags)) {
    check_output_folder(out->string());
    if (!is_set(flags, "resume")) refuse_folder_place({"--out", *out});
    folder.emplace(*out);
  }
  return read_request(flags, command, folder ? &*folder : nullptr);
}

void check_inputs_of(TrainOptions& options, bool quiet) {
  warn_of_idle_groups(options.config);
  options.model_check = check_model_file("train", options.config, quiet);
  check_machine("train", options.processors, static_cast<int>(options.cluster.devices.size()),
                quiet);
}

// Says that the inputs are those of a run that could begin.
ExitCode end_checked(const TrainRequest& request, bool json) {
  const std::string steps = std::to_string(count_steps(request.options, request.data));
  print_answer(json ? "{\"steps\": " + steps + "}\n" : "the inputs hold: " + steps + " steps\n");
  return ExitCode::kOk;
}

ExitCode end_before_first_step(int signal) {
  std::fprintf(stderr, "frazil train: stopped by signal %d before the first step\n", signal);
  return static_cast<ExitCode>(128 + signal);
}

ExitCode run_train(const Flags& flags, const std::string& command) {
  RunProcesses processes(flags, command);
  if (const std::optional<ExitCode> code = processes.serve()) return *code;
  const StopSignals signals;
  const bool quiet = is_set(flags, "quiet");
  const bool json = is_set(flags, "json");
  std::optional<RunFolder> folder;
  TrainRequest request = prepare(flags, command, folder);
  TrainOptions& options = request.options;
  WeightsKeeper weights;
  if (folder) set_files(*folder, request, is_set(flags, "resume"), weights, options);
  check_inputs_of(options, quiet);
  if (is_set(flags, "check")) return end_checked(request, json);
  options.stop = [&] { return signals.received() != 0; };
  const RunProcesses::Renew renew = processes.spread(request);
  if (signals.received() != 0) return end_before_first_step(signals.received());
  Telling telling(options.config, quiet);
  const fs::path place = folder ? folder->path() : fs::path();
  const TrainResult result = train_or_tell(options, request.data, telling, place, renew);
  if (result.stopped_at) {
    const KeptOfRun kept{place, options.durable.has_value(), weights.is_kept()};
    const ExitCode code = end_stopped(result, kept, signals.received(), json);
    weights.rethrow();
    return code;
  }
  write_and_answer(
      [&] {
        if (folder) write_files(result, place);
        weights.rethrow();
      },
      json ? to_json(result, options.cluster)
           : print_result(result, options.profile, options.cluster));
  return ExitCode::kOk;
}

// Makes this process take the kernels that the run of --resume was computed by, before torch takes
// any. Whoever accepts other kernels and names some in the environment gets these.
void take_recorded_kernels(const Flags& flags) {
  if (!is_set(flags, "resume")) return;
  const auto out = find_out(flags);
  if (!out || !fs::is_directory(*out / "checkpoints")) return;
  const auto kernels = read_kernels(real_file_system(), *out / "checkpoints");
  if (!kernels) return;
  const bool is_named =
      std::getenv("ATEN_CPU_CAPABILITY") != nullptr || std::getenv("MKL_CBWR") != nullptr;
  if (is_set(flags, "accept-other-kernels") && is_named) return;
  const auto told = select_kernels(kernels->back().facts);
  if (told && !is_set(flags, "quiet")) {
    std::fprintf(stderr, "frazil train: kernels as the run has them: %s\n",
                 to_one_line(*told).c_str());
  }
}

int run_train_verb(int argc, char** argv) {
  const Verb verb{"train", "Trains a model by plans that change as layers freeze.",
                  "frazil train --run FILE --profile FILE --cluster FILE [--out FOLDER]\n"
                  "       frazil train --resume FOLDER [--accept-other-kernels]",
                  kTrainWords};
  const std::string command = command_text(argc, argv);
  return run_verb(verb, argc, argv, describe_flags(), [&](const Flags& flags) {
    take_recorded_kernels(flags);
    return run_with_torch(flags, [&] { return run_train(flags, command); });
  });
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_train_verb(argc, argv); }
