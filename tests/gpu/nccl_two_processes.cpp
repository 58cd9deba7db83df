// Two processes on one GPU speak NCCL over loopback, as on two hosts: messages, collectives, a
// training, losses of a process, twenty communicators in a row. Each part has processes and a time
// limit of its own, so one that fails or hangs costs the others nothing; all together take at most
// 90 s. Prints JSON lines: what the parts saw, and how each ended. Ends with 0 if all ended well.
// The times are those of two processes that take turns at one GPU and send through the host.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "exec/communication/load_nccl.h"
#include "exec/devices/kernel_choice.h"
#include "exec/devices/load_accelerator.h"
#include "tests/gpu/nccl_parts.h"

namespace {

using namespace frazil;
using Clock = std::chrono::steady_clock;

constexpr auto kAll = std::chrono::seconds(88);
constexpr int kOverTime = -1;

// Runs one rank's side of a part; returns the exit code.
int run_rank(const NcclPart& part, int rank, int descriptor) {
  const PairSocket socket(descriptor);
  try {
    (void)load_accelerator();
    const NcclPair pair(load_nccl(), rank, socket);
    part.run(pair);
    if (!part.kills_rank_1) socket.meet();
  } catch (const std::exception& error) {
    // Of what torch says the first line tells what is wrong.
    std::string words = std::string(error.what()).substr(0, 240);
    words = words.substr(0, words.find("Exception raised from"));
    for (char& letter : words) {
      if (letter == '"' || letter == '\\' || letter == '\n') letter = ' ';
    }
    std::printf("{\"part\":\"%s\",\"rank\":%d,\"error\":\"%s\"}\n", part.name.c_str(), rank,
                words.c_str());
    std::fflush(stdout);
    std::_Exit(1);
  }
  // What torch and NCCL do when a process ends is no part of this.
  std::_Exit(0);
}

void set_variables(int rank) {
  constexpr int kReplace = 1;
  // Two processes that name one host are refused one GPU.
  ::setenv("NCCL_HOSTID", rank == 0 ? "frazil-a" : "frazil-b", kReplace);
  ::setenv("NCCL_IB_DISABLE", "1", kReplace);
  bind_nccl();
}

pid_t start_rank(const std::string& part, int rank, const std::array<int, 2>& sockets) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(sockets[static_cast<std::size_t>(1 - rank)]);
  set_variables(rank);
  const std::string number = std::to_string(rank);
  const std::string socket = std::to_string(sockets[static_cast<std::size_t>(rank)]);
  ::execl("/proc/self/exe", "nccl_two_processes", part.c_str(), number.c_str(), socket.c_str(),
          static_cast<char*>(nullptr));
  std::_Exit(127);
}

// Returns the exit code, or kOverTime after killing the process.
int wait_for(pid_t child, Clock::time_point until) {
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > until) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return kOverTime;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool run_part(const NcclPart& part, Clock::time_point last) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) return false;
  const auto start = Clock::now();
  const auto until = std::min(last, start + std::chrono::seconds(part.seconds));
  const std::array<pid_t, 2> ranks = {start_rank(part.name, 0, sockets),
                                      start_rank(part.name, 1, sockets)};
  for (const int one : sockets) ::close(one);
  const int first = wait_for(ranks[0], until);
  const int second = wait_for(ranks[1], std::min(until, Clock::now() + std::chrono::seconds(2)));
  const bool is_well = first == 0 && second == (part.kills_rank_1 ? 128 + SIGKILL : 0);
  const char* const ended = first == kOverTime ? "over time" : is_well ? "well" : "failed";
  std::printf("{\"part\":\"%s\",\"ended\":\"%s\",\"codes\":[%d,%d],\"seconds\":%.1f}\n",
              part.name.c_str(), ended, first, second, since_start(start).count() / 1000);
  std::fflush(stdout);
  return is_well;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels(Kernels::kPortable);
  const std::vector<NcclPart> parts = nccl_parts();
  if (argc == 4) {
    for (const NcclPart& part : parts) {
      if (part.name == argv[1]) return run_rank(part, std::atoi(argv[2]), std::atoi(argv[3]));
    }
    return 2;
  }
  const auto last = Clock::now() + kAll;
  bool all_well = true;
  for (const NcclPart& part : parts) {
    if (argc == 2 && part.name != argv[1]) continue;
    if (Clock::now() + std::chrono::seconds(3) > last) {
      std::printf("{\"part\":\"%s\",\"ended\":\"left out\"}\n", part.name.c_str());
      all_well = false;
      continue;
    }
    all_well = run_part(part, last) && all_well;
  }
  return all_well ? 0 : 1;
}
