#include "exec/train/processes/member_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "exec/devices/cores.h"
#include "exec/devices/kernel_facts.h"
#include "exec/links/socket.h"
#include "exec/train/processes/gloo_world.h"
#include "exec/train/processes/member_setup.h"
#include "profiles/error.h"

extern char** environ;

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr int kFirstInherited = 100;  // above what a program has open when it starts
constexpr auto kPatience = std::chrono::seconds(2);

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

bool has_ended(pid_t child) { return ::waitpid(child, nullptr, WNOHANG) != 0; }

}  // namespace

MemberProcesses::MemberProcesses(int processes) {
  const auto count = static_cast<std::size_t>(processes);
  std::vector<std::vector<PeerSockets>> mesh = make_socket_pairs(processes);
  peers_ = std::move(mesh.at(0));
  for (std::size_t process = 1; process < count; ++process) {
    SocketPair control = make_socket_pair();
    start(static_cast<int>(process), std::move(control[1]), std::move(mesh[process]));
    members_.emplace(static_cast<int>(process), std::move(control[0]));
  }
}

// The child finds its sockets under numbers that follow one another: control, then two for each
// other process.
void MemberProcesses::start(int process, Descriptor control, std::vector<PeerSockets> peers) {
  const fs::path program = member_program();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int next = kFirstInherited;
  std::string sockets;
  const auto pass = [&](const Descriptor& descriptor) {
    posix_spawn_file_actions_adddup2(&actions, descriptor.number(), next);
    sockets += (sockets.empty() ? "" : ",") + std::to_string(next++);
  };
  pass(control);
  for (std::size_t other = 0; other < peers.size(); ++other) {
    if (static_cast<int>(other) == process) continue;
    pass(peers[other].steps);
    pass(peers[other].bulk);
  }
  std::vector<std::string> words{program.string(), "--process", std::to_string(process),
                                 "--sockets", sockets};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail_system(program.string(), error, "posix_spawn", "a program that starts");
  children_.push_back(child);
}

MemberProcesses::~MemberProcesses() {
  members_.clear();
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
              Transport transport) {
  return lead_over(members.take_members(), members.take_peers(), options, data, transport);
}

RunWorld lead_over(std::map<int, Descriptor> members, std::vector<PeerSockets> peers,
                   const TrainOptions& options, const Dataset& data, Transport transport) {
  const auto devices = static_cast<int>(options.cluster.devices.size());
  const int processes = static_cast<int>(members.size()) + 1;
  const std::vector<int> process_of = spread_devices(devices, processes);
  const bool has_core_per_rank = process_of.size() <= allowed_cores().size();
  RunWorld::Join join;
  std::uint16_t gloo_port = 0;
  if (transport == Transport::kGloo) {
    GlooPlace place = lead_by_gloo(find_gloo_hosts(members.begin()->second).own, processes);
    gloo_port = place.store.port;
    join = join_over_gloo(std::move(place));
  } else {
    join = join_over_links(std::move(peers), 0, has_core_per_rank);
  }
  const MemberSetup setup{.config = to_json(options.config),
                          .kind = options.processors.kind,
                          .gpus = options.processors.gpus,
                          .process_of = process_of,
                          .has_core_per_rank = has_core_per_rank,
                          .data_hash = hash_data(data),
                          .kernels = describe(present_kernels()),
                          .gloo_port = gloo_port};
  RunWorld world{.place = place_of(process_of, 0),
                 .members = std::move(members),
                 .setup = encode(setup),
                 .join = std::move(join)};
  world.place.has_core_per_rank = has_core_per_rank;
  return world;
}

}  // namespace frazil
