#include "exec/verbs/run_processes.h"

#include <cstdio>
#include <utility>

#include "exec/checkpoint/stop_signals.h"
#include "exec/train/processes/run_world.h"
#include "exec/verbs/train_flags.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/plan/commit_round.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/known_words.h"

namespace frazil {
namespace {

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

// Waits for the other processes where this one is one of several that somebody has launched. A
// signal ends it at once.
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

}  // namespace

void tell_person(const std::string& sentence) {
  std::fprintf(stderr, "frazil train: %s\n", to_one_line(sentence).c_str());
}

RunProcesses::RunProcesses(const Flags& flags, std::string command)
    : flags_(flags), command_(std::move(command)), joined_(find_launch(flags, command_)) {}

std::optional<ExitCode> RunProcesses::serve() {
  while (joined_ && !joined_->leads()) {
    if (const std::optional<ExitCode> code = serve_to_end(*joined_)) return code;
    joined_ = find_launch(flags_, command_);
  }
  return std::nullopt;
}

struct RunProcesses::Counts {
  int processes = 1;  // that begin the run
  int places = 1;     // over which its devices are spread
};

RunProcesses::Counts RunProcesses::count(const TrainRequest& request) const {
  const auto devices = static_cast<int>(request.options.cluster.devices.size());
  Counts counts;
  counts.processes = count_processes(flags_, devices, joined_);
  if (!joined_ && counts.processes > 1 && optional_text(flags_, "token-file")) {
    refuse_flags("--token-file for a run that nobody joins", "--listen, --join or a launcher");
  }
  counts.places = count_places(flags_, counts.processes, devices);
  return counts;
}

RunProcesses::Renew RunProcesses::spread(TrainRequest& request) {
  TrainOptions& options = request.options;
  const auto [processes, places] = count(request);
  options.places = places;
  const bool restarts = is_set(flags_, "restart-lost");
  if (restarts && joined_) {
    refuse_flags("--restart-lost for processes that somebody else has launched", "--procs alone");
  }
  const Transport transport = read_transport(flags_, request, processes);
  options.processes_may_come = restarts || places > processes;
  if (transport == Transport::kGloo && options.processes_may_come) {
    refuse_flags("--transport gloo for processes that come later", "one of the two");
  }
  if (places > 1) {
    spread_over(options.cluster, places);
    check_places(options, processes);
  }
  const auto children_are_begun_anew = [](int) {};
  if (joined_) {
    options.members_join_again = may_join_again(*joined_, transport);
    options.world = [this, &request, transport] {
      return lead(*joined_, request.options, request.data, transport, tell_person);
    };
    if (!options.members_join_again) return {};
    return [this](int left) { joined_ = join_again(*joined_, left, tell_person); };
  }
  if (places > 1) {
    options.world = [this, &request, processes = processes, transport, restarts] {
      return lead(members_.emplace(processes), request.options, request.data, transport, restarts);
    };
  }
  return children_are_begun_anew;
}

}  // namespace frazil
