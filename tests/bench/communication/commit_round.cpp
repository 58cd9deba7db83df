// clang-format off
// Measures the commit round of a step over 2 and 4 processes of this machine, each with one device
// that has nothing else to do: from the last vote to the last device that knows the verdict, by the
// one clock of the machine. Median of all rounds, and the 99th percentile.
// By hand: build/bin/bench_commit_round [rounds].
// clang-format on

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/control/control_group.h"
#include "exec/control/control_member.h"
#include "exec/devices/cores.h"
#include "exec/links/socket.h"
#include "tests/bench/support/spread.h"

namespace frazil {
namespace {

constexpr Duration kLimit = std::chrono::minutes(1);

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

struct Vote {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

Vote vote(CommitRound& round, int process, Step step) {
  Vote times{.begin = now_ns()};
  const WaitLimit limit(kLimit);
  round.vote(DeviceId{process}, step, limit);
  times.end = now_ns();
  return times;
}

void serve(int process, Descriptor leader, bool spins) {
  ControlMember member(std::move(leader), [](const std::string&) {});
  if (spins) member.round().let_spin();
  Step step = 0;
  while (const std::optional<OrderMessage> order = member.next()) {
    member.round().begin(step, 1);
    const Vote times = vote(member.round(), process, step++);
    member.answer(order->number, std::to_string(times.begin) + " " + std::to_string(times.end));
  }
}

Vote read_vote(const std::string& text) {
  char* rest = nullptr;
  const std::int64_t begin = std::strtoll(text.c_str(), &rest, 10);
  return {begin, std::strtoll(rest, nullptr, 10)};
}

void measure(int processes, int rounds) {
  const bool spins = processes <= static_cast<int>(allowed_cores().size());
  std::map<int, Descriptor> sockets;
  std::vector<pid_t> children;
  for (int process = 1; process < processes; ++process) {
    SocketPair pair = make_socket_pair();
    children.push_back(fork());
    if (children.back() == 0) {
      sockets.clear();
      pair[0].close();
      serve(process, std::move(pair[1]), spins);
      _exit(0);
    }
    sockets.emplace(process, std::move(pair[0]));
  }
  std::vector<double> times;
  {
    ControlGroup group([](int process) { return "rank " + std::to_string(process); },
                       {.abort = [](const std::string&) {}, .suspect = {}});
    if (spins) group.round().let_spin();
    std::set<int> voters{0};
    for (auto& [process, socket] : sockets) {
      group.admit(process, std::move(socket));
      voters.insert(process);
    }
    for (Step step = 0; step < rounds; ++step) {
      group.order("a step", voters, step);
      group.round().begin(step, 1);
      Vote all = vote(group.round(), 0, step);
      for (const MemberReply& reply : group.collect()) {
        const Vote one = read_vote(reply.result);
        all = {std::max(all.begin, one.begin), std::max(all.end, one.end)};
      }
      times.push_back(static_cast<double>(all.end - all.begin) / 1e3);
    }
    for (int process = 1; process < processes; ++process) group.dismiss(process, 0, "");
    for (const pid_t child : children) waitpid(child, nullptr, 0);
  }
  std::sort(times.begin(), times.end());
  std::printf("%d processes: %8.1f us, p99 %8.1f us\n", processes, times[times.size() / 2],
              times[times.size() * 99 / 100]);
}

}  // namespace
}  // namespace frazil

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 2000;
  for (const int processes : {2, 4}) frazil::measure(processes, rounds);
  return 0;
}
