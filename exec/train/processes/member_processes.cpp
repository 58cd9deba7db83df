#include "exec/train/processes/member_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "exec/communication/load_nccl.h"
#include "exec/devices/cores.h"
#include "exec/devices/kernel_facts.h"
#include "exec/links/passed_sockets.h"
#include "exec/links/socket.h"
#include "exec/train/processes/gloo_world.h"
#include "exec/train/processes/member_setup.h"
#include "profiles/error.h"

extern char** environ;

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr int kLeastInherited = 3;  // above standard input and outputs
constexpr auto kPatience = std::chrono::seconds(2);
constexpr auto kPassing = std::chrono::seconds(10);
constexpr int kMostStarts = 3;  // in a place, one after another, that come to nothing

fs::path member_program() {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  const fs::path program = own.parent_path() / "frazil-member";
  if (error || !fs::exists(program)) {
    throw InputError("--procs", 0, "no program " + program.string(),
                     "frazil-member beside this program");
  }
  return program;
}

// What a terminal sends to all waits in the child until it says that it does not hear it.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &held);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

bool has_ended(pid_t child) { return ::waitpid(child, nullptr, WNOHANG) != 0; }

}  // namespace

MemberProcesses::MemberProcesses(int processes) {
  std::vector<std::vector<PeerSockets>> mesh = make_socket_pairs(processes);
  peers_ = std::move(mesh.at(0));
  for (int process = 1; process < processes; ++process) {
    start(process, std::move(mesh[static_cast<std::size_t>(process)]));
  }
}

// The child finds its sockets under numbers that follow one another: control, the passage for those
// of other processes, then two for each process that begins with it. All of these numbers are above
// those that the sockets have here, or one would take the place of another that is yet to be
// passed.
void MemberProcesses::start(int process, std::vector<PeerSockets> peers) {
  SocketPair control = make_socket_pair();
  SocketPair passage = make_socket_pair();
  const fs::path program = member_program();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  std::vector<int> inherited{control[1].number(), passage[1].number()};
  for (std::size_t other = 0; other < peers.size(); ++other) {
    if (static_cast<int>(other) == process) continue;
    inherited.push_back(peers[other].steps.number());
    inherited.push_back(peers[other].bulk.number());
  }
  int next = std::max(kLeastInherited, 1 + *std::max_element(inherited.begin(), inherited.end()));
  std::string sockets;
  for (const int number : inherited) {
    posix_spawn_file_actions_adddup2(&actions, number, next);
    sockets += (sockets.empty() ? "" : ",") + std::to_string(next++);
  }
  std::vector<std::string> words{program.string(), "--process", std::to_string(process),
                                 "--sockets", sockets};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const SpawnAttributes attributes;
  const int error =
      ::posix_spawn(&child, program.c_str(), &actions, attributes.get(), arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail_system(program.string(), error, "posix_spawn", "a program that starts");
  children_.push_back(child);
  controls_[process] = std::move(control[0]);
  passages_[process] = std::move(passage[0]);
}

RunDoor MemberProcesses::door() {
  return {.let_in =
              [this](const std::set<int>& vacant) {
                std::erase_if(children_, has_ended);
                count_arrivals(vacant);
                std::vector<Newcomer> newcomers;
                for (const int process : vacant) {
                  if (starts_[process] == kMostStarts) continue;
                  ++starts_[process];
                  start(process, {});
                  newcomers.push_back({process, std::move(controls_.at(process))});
                }
                return newcomers;
              },
          .introduce =
              [this](int process, std::uint32_t epoch, const std::set<int>& others) {
                return introduce(process, epoch, others);
              }};
}

// Between two calls a step is tried: one that has been introduced and is there still has taken part
// in it.
void MemberProcesses::count_arrivals(const std::set<int>& vacant) {
  for (const int process : std::exchange(introduced_, {})) {
    if (!vacant.contains(process)) starts_[process] = 0;
  }
}

// A process that has gone takes no sockets; its loss is found out elsewhere.
ConnectJob MemberProcesses::introduce(int process, std::uint32_t epoch,
                                      const std::set<int>& others) {
  introduced_.insert(process);
  const auto pass = [&](int to, int of, PeerSockets sockets) {
    try {
      pass_sockets(passages_.at(to), {epoch, of, std::move(sockets)});
    } catch (const SocketError&) {
      return;
    }
  };
  for (const int other : others) {
    SocketPair steps = make_socket_pair();
    SocketPair bulk = make_socket_pair();
    pass(process, other, {std::move(steps[0]), std::move(bulk[0])});
    PeerSockets of_other{std::move(steps[1]), std::move(bulk[1])};
    if (other == 0) {
      late_ = std::move(of_other);
    } else {
      pass(other, process, std::move(of_other));
    }
  }
  return {.process = process,
          .epoch = epoch,
          .others = {others.begin(), others.end()},
          .addresses = {}};
}

LateSockets MemberProcesses::late_sockets() {
  return [this](const ConnectJob& job, const std::function<void()>&) {
    std::map<int, PeerSockets> sockets;
    sockets.emplace(job.process, std::move(late_));
    return sockets;
  };
}

LateSockets take_from_leader(int process, Descriptor passage) {
  const auto from = std::make_shared<Descriptor>(std::move(passage));
  return [process, from](const ConnectJob& job, const std::function<void()>& check) {
    const std::set<int> expected = job.process == process
                                       ? std::set<int>(job.others.begin(), job.others.end())
                                       : std::set<int>{job.process};
    const auto until = std::chrono::steady_clock::now() + kPassing;
    std::map<int, PeerSockets> sockets;
    while (sockets.size() < expected.size()) {
      if (std::chrono::steady_clock::now() >= until) {
        throw PeerLost("the leader has handed over no sockets to other processes");
      }
      check();
      std::optional<PassedSockets> passed;
      try {
        passed = take_passed(*from, std::chrono::milliseconds(50));
      } catch (const SocketError& error) {
        throw PeerLost(error.what());
      }
      // What was passed for a world that never began is let go.
      if (!passed || passed->epoch != job.epoch || !expected.contains(passed->process)) continue;
      sockets.insert_or_assign(passed->process, std::move(passed->sockets));
    }
    return sockets;
  };
}

MemberProcesses::~MemberProcesses() {
  controls_.clear();
  passages_.clear();
  peers_.clear();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!children_.empty() && std::chrono::steady_clock::now() < end) {
    std::erase_if(children_, has_ended);
    if (!children_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (const pid_t child : children_) {
    (void)::kill(child, SIGKILL);
    (void)::waitpid(child, nullptr, 0);
  }
}

RunWorld lead(MemberProcesses& members, const TrainOptions& options, const Dataset& data,
              Transport transport, bool restarts) {
  RunWorld world = lead_over(members.take_members(), members.take_peers(), options, data, transport,
                             members.late_sockets());
  if (restarts) world.door = members.door();
  return world;
}

RunWorld lead_over(std::map<int, Descriptor> members, std::vector<PeerSockets> peers,
                   const TrainOptions& options, const Dataset& data, Transport transport,
                   LateSockets late) {
  const auto devices = static_cast<int>(options.cluster.devices.size());
  const int places = std::max(options.places, static_cast<int>(members.size()) + 1);
  const std::vector<int> process_of = spread_devices(devices, places);
  const bool has_core_per_rank = process_of.size() <= allowed_cores().size();
  peers.resize(static_cast<std::size_t>(places));
  std::shared_ptr<PeerLinks> links;
  RunWorld::Join join;
  std::uint16_t gloo_port = 0;
  const std::string own_host =
      members.empty() ? ProcessHosts{}.own : find_hosts(members.begin()->second).own;
  if (transport == Transport::kGloo) {
    GlooPlace place = lead_by_gloo(own_host, places);
    gloo_port = place.store.port;
    join = join_over_gloo(std::move(place));
  } else {
    links = std::make_shared<PeerLinks>(std::move(peers));
    join = join_over_links(links, 0, has_core_per_rank);
  }
  const MemberSetup setup{.config = to_json(options.config),
                          .kind = options.processors.kind,
                          .gpus = options.processors.gpus,
                          .process_of = process_of,
                          .has_core_per_rank = has_core_per_rank,
                          .data_hash = hash_data(data),
                          .files = describe_files(options.config),
                          .kernels = describe(present_kernels()),
                          .gloo_port = gloo_port,
                          .speaks_nccl = transport == Transport::kNccl};
  RunWorld world{.place = place_of(process_of, 0),
                 .members = std::move(members),
                 .setup = encode(setup),
                 .join = std::move(join),
                 .connect = connect_over_links(links, std::move(late))};
  world.place.has_core_per_rank = has_core_per_rank;
  if (setup.speaks_nccl) {
    bind_nccl(own_host);
    world.place.nccl = &load_nccl();
  }
  return world;
}

}  // namespace frazil
