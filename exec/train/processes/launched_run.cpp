#include "exec/train/processes/launched_run.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "exec/control/control_message.h"
#include "exec/devices/cores.h"
#include "exec/devices/kernel_facts.h"
#include "exec/disk/hashes.h"
#include "exec/links/joining/join_token.h"
#include "exec/links/joining/launch_environment.h"
#include "exec/train/processes/joined_door.h"
#include "exec/train/processes/member.h"
#include "exec/train/processes/member_processes.h"

namespace frazil {
namespace {

// Members that have been dismissed put away model and devices, and join.
constexpr Duration kComing = std::chrono::seconds(10);

// Processes of other programs would understand each other wrongly.
std::uint64_t hash_program() {
  std::ifstream program("/proc/self/exe", std::ios::binary);
  return hash_text(
      std::string(std::istreambuf_iterator<char>(program), std::istreambuf_iterator<char>()));
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "a host without a name";
  return name;
}

// `run`: a hash of the words of the launch, 0 where processes have words of their own.
JoinOptions join_options(std::uint64_t run, std::optional<Secret> token,
                         const std::function<void(const std::string&)>& tell) {
  JoinOptions options;
  options.facts = {.version = FRAZIL_VERSION,
                   .build = hash_program(),
                   .run = run,
                   .kernels = hash_text(describe(present_kernels())),
                   .attempt = 0,
                   .host = host_name(),
                   .pid = static_cast<int>(::getpid()),
                   .devices = 0};
  options.token = std::move(token);
  options.tell = tell;
  return options;
}

}  // namespace

std::optional<JoinedWorld> join_launch(const LaunchFlags& flags, const std::string& command,
                                       const std::string& token_file, bool may_grow,
                                       const std::function<void(const std::string&)>& tell) {
  const std::optional<LaunchPlace> place = find_launch_place(flags, read_environment());
  if (!place || (place->processes == 1 && !may_grow)) return std::nullopt;
  const bool has_own_words = place->launcher == Launcher::kFlags;
  const JoinOptions options =
      join_options(has_own_words ? 0 : hash_text(command),
                   token_file.empty() ? std::nullopt : std::optional(read_token(token_file)), tell);
  JoinedWorld joined = join_world(*place, options);
  // Whoever else launches processes also decides how many.
  if (!has_own_words) joined.door.reset();
  return joined;
}

std::optional<ExitCode> serve_joined(JoinedWorld& joined,
                                     const std::function<void(const std::string&)>& tell) {
  LateSockets late = late_sockets_of(joined);
  const std::vector<int> cores = allowed_cores();
  const StopMessage stop = serve_run(joined.process, std::move(joined.control.at(0)),
                                     std::move(joined.peers), std::move(late));
  if (stop.code == kJoinAgain) {
    keep_to(cores);  // it may get another place
    tell(stop.sentence + "; this process joins again");
    return std::nullopt;
  }
  if (stop.code != 0) tell(stop.sentence);
  return static_cast<ExitCode>(stop.code);
}

// Only where somebody has begun the processes by hand does the door stay open.
bool may_join_again(const JoinedWorld& joined, Transport transport) {
  return joined.door != nullptr && transport == Transport::kSockets;
}

JoinedWorld join_again(const JoinedWorld& before, int left,
                       const std::function<void(const std::string&)>& tell) {
  const SocketAddress& address = before.members.at(0).address;
  LaunchPlace place;
  place.process = 0;
  place.processes = left;
  place.meeting = LaunchAddress{address.host, address.port};
  JoinOptions options = join_options(0, before.token, tell);
  options.limit = kComing;
  options.begins_with_fewer = true;
  return join_world(place, options);
}

RunWorld lead(JoinedWorld& joined, const TrainOptions& options, const Dataset& data,
              Transport transport, const std::function<void(const std::string&)>& tell) {
  std::map<int, Descriptor> members;
  for (std::size_t process = 1; process < joined.control.size(); ++process) {
    members.emplace(static_cast<int>(process), std::move(joined.control[process]));
  }
  if (transport == Transport::kGloo) joined.door.reset();
  if (!joined.door) {
    return lead_over(std::move(members), std::move(joined.peers), options, data, transport, {});
  }
  const auto door = std::make_shared<JoinedDoor>(joined, tell);
  RunWorld world = lead_over(std::move(members), std::move(joined.peers), options, data, transport,
                             [door](const ConnectJob& job, const std::function<void()>& check) {
                               return door->take_calls(job, check);
                             });
  world.door = {.let_in = [door](const std::set<int>& vacant) { return door->let_in(vacant); },
                .introduce =
                    [door](int process, std::uint32_t epoch, const std::set<int>& others) {
                      return door->introduce(process, epoch, others);
                    }};
  return world;
}

}  // namespace frazil
