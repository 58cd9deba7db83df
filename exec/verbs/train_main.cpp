// frazil train: trains a model by plans that change as layers freeze.

#include <boost/program_options.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "exec/checkpoint/run_kernels.h"
#include "exec/checkpoint/stop_signals.h"
#include "exec/checkpoint/weights_file.h"
#include "exec/config/configured_run.h"
#include "exec/devices/numerics.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/process_memory.h"
#include "exec/models/weight_names.h"
#include "exec/state/parameter_groups.h"
#include "exec/train/plans/elastic_plan.h"
#include "exec/train/processes/launched_run.h"
#include "exec/train/processes/member_processes.h"
#include "exec/train/processes/run_world.h"
#include "exec/train/progress.h"
#include "exec/train/run_folder.h"
#include "exec/train/train_files.h"
#include "exec/train/trainer.h"
#include "exec/verbs/train_answer.h"
#include "exec/verbs/train_request.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/plan/commit_round.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/kernels_flag.h"
#include "planner/verbs/known_words.h"
#include "planner/verbs/plan_options.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr int kMostProcesses = 4096;

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  flags.add_options()                                                                     //
      ("run", text_value("FILE"), "run configuration: model, data, optimizer, freezing")  //
      ("profile", text_value("FILE"), "model profile (frazil profile --out)")             //
      ("cluster", text_value("FILE"), "cluster (frazil profile --cluster-out)")           //
      ("plan", text_value("FILE"),
       "plan to begin with; default: the first that frazil plan --forecast holds for these files, "
       "or, "
       "if nothing freezes, the one that frazil plan ranks first")  //
      ("schedules", known_value("LIST", list_schedule_words(/*with_search=*/false)),
       "schedules to choose from now and when blocks freeze, a comma list; default: all that are "
       "synchronous")  //
      ("max-replicas", text_value("N"),
       "most pipelines, and most devices of a stage, of any plan of the run; default: as many as "
       "fit")  //
      ("planner", known_value("NAME", list_leading_planners()),
       "go on under each mask with the plan that another system's planner has for it, whatever the "
       "transition costs; its pipelines get the run's micro-batches")  //
      ("device", known_value("KIND", kDeviceWords),
       "what the cluster's devices are here: cpu (default) or cuda")  //
      ("gpus", text_value("LIST"),
       "with --device cuda: which GPUs, as 0,1; devices take them in turn; default: all")  //
      ("procs", text_value("N"),
       "spread the devices over so many processes of this machine (default: 1, all are threads of "
       "one); with --listen: over so many that come together")  //
      ("places", text_value("N"),
       "spread the devices over N processes of which --procs are there at the beginning; others "
       "come "
       "while the run goes on")  //
      ("restart-lost", po::bool_switch(),
       "with --procs: begin a new process in each place that is vacant")  //
      ("listen", text_value("ADDRESS:PORT"),
       "lead a run over processes that --join it here, or where a launcher has begun them")  //
      ("join", text_value("ADDRESS:PORT"),
       "serve the run that is led from there; no other flag "
       "but --token-file")  //
      ("token-file", text_value("FILE"),
       "32 random bytes, mode 0600, that prove who belongs to a run beyond this host")  //
      ("transport", known_value("WORD", kTransportWords),
       "what carries tensors between processes: sockets (default), gloo, PyTorch's own and slower, "
       "or nccl between the GPUs of --device cuda")                         //
      ("keep-plan", po::bool_switch(), "never re-plan when blocks freeze")  //
      ("switch-time", text_value("TIME"),
       "fixed cost of changing plans, besides moving state, by which plans are chosen; default: "
       "what "
       "the run measures as it begins")                                //
      ("no-freeze", po::bool_switch(), "train all blocks to the end")  //
      ("freeze", text_value("FILE"),
       "instead of the run's own \"freeze\": that JSON object itself, or a file that holds it")  //
      ("init-from", text_value("FILE"),
       "start from the weights of this safetensors file, which names them as weights.safetensors "
       "of such a run does")                                 //
      ("seed", text_value("N"), "instead of the run's own")  //
      ("steps", text_value("N"),
       "end after so many steps; default: all epochs; with --resume: go on to so many")  //
      ("out", text_value("FOLDER"),
       "folder for weights.safetensors, trace.jsonl, events.jsonl, plans and time lines (for "
       "frazil report)")                                                      //
      ("force", po::bool_switch(), "replace the run in the folder of --out")  //
      ("checkpoint-every", text_value("N"),                                   //
       "steps from checkpoint to checkpoint, under the folder of --out; the last one is of the "
       "end, "
       "or of the step at which SIGTERM or SIGINT ended the run (exit code 143 or 130)")  //
      ("resume", po::bool_switch(),                                                       //
       "frazil train --resume FOLDER: go on with the run of this folder from its newest good "
       "checkpoint, with the flags it was begun with, or under another plan, profile and cluster; "
       "steps done again must give the losses recorded, or the exit code is 1")  //
      ("accept-other-kernels", po::bool_switch(),
       "with --resume: go on even if this process has other kernels than those that the run was "
       "computed by; bits differ from there on, and journal and report say so")  //
      ("quiet", po::bool_switch(), "no progress, but warnings")                  //
      ("json", po::bool_switch(), "answer in JSON");
  add_kernels_flag(flags);
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

// Returns what the file says of itself; "statistics" names the running statistics, "unchanged" the
// tensors that training leaves alone.
std::map<std::string, std::string> describe_weights(const RunConfig& config, Step done) {
  const ModelSpec model = make_model(config);
  std::map<std::string, std::string> metadata{{"model", model.name},
                                              {"steps", std::to_string(done)}};
  const auto list = [&](const char* key, const std::string& name) {
    std::string& names = metadata[key];
    names += (names.empty() ? "" : ",") + name;
  };
  for (const LayerSpec& layer : model.layers) {
    for (const StatisticSpec& statistic : layer.statistics) list("statistics", statistic.name);
  }
  if (const auto file = find_file(config.model)) {
    for (const std::string& name : file->graph.kept) list("unchanged", name);
  }
  return metadata;
}

// Keeps the weights in the folder. A failure is told when the answer is out.
class WeightsKeeper {
 public:
  void keep(const fs::path& folder, const RunConfig& config, const std::vector<LayerState>& layers,
            Step done) {
    try {
      std::vector<const Tensors*> parameters;
      std::vector<const Tensors*> statistics;
      for (const LayerState& layer : layers) {
        parameters.push_back(&layer.parameters);
        statistics.push_back(&layer.statistics);
      }
      std::vector<NamedTensor> weights = name_weights(config.model, parameters);
      for (NamedTensor& statistic : name_statistics(make_model(config), statistics)) {
        weights.push_back(std::move(statistic));
      }
      write_weights(real_file_system(), folder / "weights.safetensors", weights,
                    describe_weights(config, done));
      is_kept_ = true;
    } catch (const InputError&) {
      failure_ = std::current_exception();
    }
  }
  bool is_kept() const { return is_kept_; }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  bool is_kept_ = false;
  std::exception_ptr failure_;
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
  options.keep_weights = [&](const std::vector<LayerState>& layers, Step done) {
    weights.keep(folder.path(), options.config, layers, done);
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

// Makes the processes with which a run goes on of those that are left, so many; empty: it cannot.
using Renew = std::function<void(int left)>;

// Trains; a run that keeps checkpoints, and whose processes have taken layers along that nobody
// else held, goes on from the newest checkpoint.
TrainResult train_on(TrainOptions& options, const Dataset& data, Telling& telling,
                     const Renew& renew) {
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
                          const fs::path& folder, const Renew& renew) {
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

// Returns the number of processes of the run.
int count_processes(const Flags& flags, int devices, const std::optional<JoinedWorld>& joined) {
  const int processes = joined ? joined->processes : integer_or(flags, "procs", 1, 1, devices);
  if (processes > devices) {
    throw InputError("command line", 0,
                     std::to_string(processes) + " processes for " + std::to_string(devices) +
                         (devices == 1 ? " device" : " devices"),
                     "a cluster with a device for each");
  }
  return processes;
}

// Returns over how many processes the devices are spread, of which so many begin the run.
int count_places(const Flags& flags, int processes, int devices) {
  const int places = integer_or(flags, "places", processes, 1, devices);
  if (places >= processes) return places;
  refuse_flags(
      "--places " + std::to_string(places) + " for " + std::to_string(processes) + " processes",
      "a place for each");
}

// A given plan is to begin with, so it uses devices that are there then.
void check_places(const TrainOptions& options, int processes) {
  if (!options.plan) return;
  for (const DeviceId device : list_used_devices(*options.plan)) {
    const Device& used = options.cluster.devices[device.index()];
    if (used.process.value < processes) continue;
    throw InputError(options.plan_file, 0, "device " + used.name + ", which may come later",
                     "devices of the processes that begin the run");
  }
}

void tell_person(const std::string& sentence) {
  std::fprintf(stderr, "frazil train: %s\n", to_one_line(sentence).c_str());
}

void warn_of_idle_groups(const RunConfig& config) {
  if (config.optimizer.groups.empty()) return;
  for (const std::string& sentence :
       tell_idle_groups(config.optimizer.groups, make_model(config))) {
    tell_person(sentence);
  }
}

Transport read_transport(const Flags& flags, const TrainRequest& request, int processes) {
  const auto text = optional_text(flags, "transport");
  if (!text) return Transport::kSockets;
  const std::string word = known_name("--transport", *text, kTransportWords);
  if (processes == 1) {
    refuse_flags("--transport for one process", "--procs, --listen or a launcher beside it");
  }
  if (word == "gloo") return Transport::kGloo;
  if (word == "sockets") return Transport::kSockets;
  if (request.options.processors.kind == DeviceKind::kCpu) {
    refuse_flags("--transport nccl without --device cuda", "both");
  }
  if (request.options.config.message_order != MessageOrder::kAsSent) {
    throw InputError(request.run_file, 0, "\"message_order\": \"by-tag\"",
                     "\"as-sent\" with --transport nccl, which knows no tags");
  }
  return Transport::kNccl;
}

// Refuses what can be refused before anybody is waited for.
void refuse_odd_launch(const Flags& flags) {
  refuse_beside_join(flags, {"token-file", "kernels"});
  if (!is_set(flags, "restart-lost")) return;
  if (optional_text(flags, "listen")) {
    refuse_flags("--restart-lost with --listen, whose processes somebody else has launched",
                 "--procs alone");
  }
  if (integer_or(flags, "procs", 1, 1, kMostProcesses) == 1 && !optional_text(flags, "places")) {
    refuse_flags("--restart-lost for one process", "--procs or --places beside it");
  }
}

// Waits for the other processes where this one is one of several that somebody has launched.
std::optional<JoinedWorld> find_launch(const Flags& flags, const std::string& command) {
  refuse_odd_launch(flags);
  LaunchFlags launch;
  launch.listen = optional_text(flags, "listen").value_or("");
  launch.join = optional_text(flags, "join").value_or("");
  if (!launch.listen.empty()) launch.processes = integer_or(flags, "procs", 0, 1, kMostProcesses);
  const bool may_grow =
      !launch.listen.empty() && integer_or(flags, "places", 1, 1, kMostProcesses) > 1;
  return join_launch(launch, command, optional_text(flags, "token-file").value_or(""), may_grow,
                     tell_person);
}

// Returns none where this process is to join again.
std::optional<ExitCode> serve_to_end(JoinedWorld& joined) {
  const StopSignals signals;
  return serve_joined(joined, tell_person);
}

ExitCode run_train(const Flags& flags, const std::string& command) {
  // Whoever waits for others ends at once at a signal.
  std::optional<JoinedWorld> joined = find_launch(flags, command);
  while (joined && !joined->leads()) {
    if (const std::optional<ExitCode> code = serve_to_end(*joined)) return *code;
    joined = find_launch(flags, command);
  }
  const StopSignals signals;
  const bool quiet = is_set(flags, "quiet");
  const bool json = is_set(flags, "json");
  const bool resume = is_set(flags, "resume");
  std::optional<RunFolder> folder;
  if (const auto out = find_out(flags)) {
    check_output_folder(out->string());
    if (!resume) refuse_folder_place({"--out", *out});
    folder.emplace(*out);
  }
  TrainRequest request = read_request(flags, command, folder ? &*folder : nullptr);
  TrainOptions& options = request.options;
  WeightsKeeper weights;
  if (folder) set_files(*folder, request, resume, weights, options);
  warn_of_idle_groups(options.config);
  const auto devices = static_cast<int>(options.cluster.devices.size());
  options.model_check = check_model_file("train", options.config, quiet);
  check_machine("train", options.processors, devices, quiet);
  options.stop = [&] { return signals.received() != 0; };
  std::optional<MemberProcesses> members;  // outlives the run that it serves
  const int processes = count_processes(flags, devices, joined);
  if (!joined && processes > 1 && optional_text(flags, "token-file")) {
    refuse_flags("--token-file for a run that nobody joins", "--listen, --join or a launcher");
  }
  options.places = count_places(flags, processes, devices);
  const bool restarts = is_set(flags, "restart-lost");
  if (restarts && joined) {
    refuse_flags("--restart-lost for processes that somebody else has launched", "--procs alone");
  }
  const Transport transport = read_transport(flags, request, processes);
  if (transport == Transport::kGloo && (restarts || options.places > processes)) {
    refuse_flags("--transport gloo for processes that come later", "one of the two");
  }
  options.processes_may_come = restarts || options.places > processes;
  if (options.places > 1) {
    spread_over(options.cluster, options.places);
    check_places(options, processes);
  }
  Renew renew = [](int) {};  // children are begun anew
  if (joined) {
    options.members_join_again = may_join_again(*joined, transport);
    renew = {};
    if (options.members_join_again) {
      renew = [&](int left) { joined = join_again(*joined, left, tell_person); };
    }
    options.world = [&] { return lead(*joined, options, request.data, transport, tell_person); };
  } else if (options.places > 1) {
    options.world = [&] {
      return lead(members.emplace(processes), options, request.data, transport, restarts);
    };
  }
  if (signals.received() != 0) {
    std::fprintf(stderr, "frazil train: stopped by signal %d before the first step\n",
                 signals.received());
    return static_cast<ExitCode>(128 + signals.received());
  }
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
