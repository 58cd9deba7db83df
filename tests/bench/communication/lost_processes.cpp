// clang-format off
// Measures how soon all survivors know that a process of their world was killed, and whether they
// say so in the same words. 2 and 4 processes of one rank each pass a message around; one of them
// gets SIGKILL at a random moment. Time runs, by the one clock of the machine, from just before the
// kill until the last survivor's wait has ended. By hand: build/bin/bench_lost_processes [kills [seed]].
// clang-format on

#include <ATen/ATen.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "exec/communication/process_communicator.h"

namespace frazil {
namespace {

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// What a survivor tells through a pipe.
struct Told {
  std::int64_t time = 0;
  std::array<char, 120> sentence{};
};

using Sockets = std::vector<std::vector<PeerSockets>>;

[[noreturn]] void play(Sockets sockets, int process, int told) {
  const auto processes = static_cast<int>(sockets.size());
  std::vector<int> process_of_rank;
  for (int rank = 0; rank < processes; ++rank) process_of_rank.push_back(rank);
  auto own = std::move(sockets[static_cast<std::size_t>(process)]);
  sockets.clear();  // those of the others, which would hide that these have closed theirs
  const auto links = std::make_shared<PeerLinks>(std::move(own));
  const auto self = std::move(make_process_communicators(links, 1, {process, process_of_rank})[0]);
  const at::Tensor tensor = at::ones({256});
  Told end;
  try {
    for (std::int32_t i = 0;; ++i) {
      self->send((process + 1) % processes, {.index = i}, {tensor});
      (void)self->receive((process + processes - 1) % processes, {.index = i});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it computes
    }
  } catch (const std::exception& error) {
    end.time = now_ns();
    std::snprintf(end.sentence.data(), end.sentence.size(), "%s", error.what());
  }
  if (write(told, &end, sizeof end) != sizeof end) _exit(1);
  for (;;) pause();  // whoever ended now would be a loss itself
}

struct Loss {
  double milliseconds = 0;
  bool agrees = true;
};

Loss kill_one(int processes, std::mt19937_64& random) {
  Sockets sockets = make_socket_pairs(processes);
  std::array<int, 2> told{};
  if (pipe(told.data()) != 0) std::exit(1);
  std::vector<pid_t> ranks;
  for (int process = 0; process < processes; ++process) {
    ranks.push_back(fork());
    if (ranks.back() == 0) play(std::move(sockets), process, told[1]);
  }
  sockets.clear();
  std::this_thread::sleep_for(std::chrono::microseconds(100'000 + random() % 50'000));
  const auto victim = ranks[random() % ranks.size()];
  const std::int64_t begin = now_ns();
  kill(victim, SIGKILL);
  Loss loss;
  std::string first;
  for (int i = 0; i < processes - 1; ++i) {
    Told one;
    if (read(told[0], &one, sizeof one) != sizeof one) std::exit(1);
    loss.milliseconds = std::max(loss.milliseconds, static_cast<double>(one.time - begin) / 1e6);
    const std::string sentence = one.sentence.data();
    if (first.empty()) first = sentence;
    loss.agrees = loss.agrees && sentence == first;
  }
  for (const pid_t rank : ranks) {
    kill(rank, SIGKILL);
    waitpid(rank, nullptr, 0);
  }
  close(told[0]);
  close(told[1]);
  return loss;
}

bool measure(int processes, int kills, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> times;
  int agreed = 0;
  for (int i = 0; i < kills; ++i) {
    const Loss loss = kill_one(processes, random);
    times.push_back(loss.milliseconds);
    agreed += loss.agrees ? 1 : 0;
  }
  std::sort(times.begin(), times.end());
  std::printf(
      "one of %d processes: all survivors know after %.2f ms, p99 %.2f ms; in the same words in %d "
      "of %d\n",
      processes, times[times.size() / 2], times[times.size() * 99 / 100], agreed, kills);
  return agreed == kills;
}

}  // namespace
}  // namespace frazil

int main(int count, char** arguments) {
  const int kills = count > 1 ? std::max(1, std::atoi(arguments[1])) : 200;
  const auto seed = static_cast<std::uint64_t>(count > 2 ? std::atoi(arguments[2]) : 1);
  std::printf("seed %d\n", static_cast<int>(seed));
  bool all = true;
  for (const int processes : {2, 4}) all = frazil::measure(processes, kills, seed) && all;
  return all ? 0 : 1;
}
