// clang-format off
// Measures messages between two processes of this machine: 1 KiB one way (half of there and back,
// median), and a stream of messages of 16 MiB, each into memory of its own. Beside each transport of
// the communicator stands the bare one that it builds on, and they take turns, round by round:
//   unix, tcp    blocking sockets, read and written by the calling thread, into one buffer
//   read memory  process_vm_readv of the other process's memory, into one buffer; no small messages
//   communicator over unix, over tcp (nothing lent), and over unix with large tensors lent
//   communicator over gloo, c10d's ProcessGroupGloo over TCP
// The communicator spins for a moment before it sleeps where both ranks have a core; blocking
// sockets sleep at once. By hand: build/bin/bench_transports [rounds].
// clang-format on

#include <ATen/ATen.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/communication/gloo_communicator.h"
#include "exec/communication/process_communicator.h"
#include "exec/links/lent_memory.h"
#include "profiles/error.h"
#include "tests/bench/support/spread.h"

namespace frazil {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPings = 500;  // of a round
constexpr std::size_t kSmall = 1024;
constexpr int kLargeMessages = 12;  // of a round
constexpr std::size_t kLarge = std::size_t{16} << 20;

// What a transport can do, on either side. The other process runs serve() until it is killed.
struct Transport {
  std::string name;
  std::function<void()> serve;             // answers pings and streams, for ever
  std::function<void()> ping;              // there and back; may be empty
  std::function<void(int)> take_messages;  // so many large ones
  std::vector<double> latencies = {};      // in us
  std::vector<double> speeds = {};         // in GB/s
  pid_t other = 0;
};

double seconds_of(const std::function<void()>& job) {
  const auto begin = Clock::now();
  job();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

SocketPair make_tcp_pair() {
  const Descriptor listener = listen_at({});
  Descriptor client = connect_to(address_of(listener), {}, std::chrono::seconds(10));
  return {std::move(client), accept_from(listener, std::chrono::seconds(10))};
}

void put(int socket, const std::vector<char>& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t sent = send(socket, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) std::exit(1);
    done += static_cast<std::size_t>(sent);
  }
}

void get(int socket, std::vector<char>& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = recv(socket, bytes.data() + done, bytes.size() - done, 0);
    if (got <= 0) std::exit(1);
    done += static_cast<std::size_t>(got);
  }
}

// The first byte of a small message asks: 0 for an answer, else for so many large messages.
Transport make_bare(const std::string& name, SocketPair pair) {
  const auto ends = std::make_shared<SocketPair>(std::move(pair));
  for (const Descriptor& end : *ends) fcntl(end.number(), F_SETFL, 0);
  const auto small = std::make_shared<std::vector<char>>(kSmall);
  const auto large = std::make_shared<std::vector<char>>(kLarge);
  const auto serve = [=] {
    const int socket = (*ends)[1].number();
    for (;;) {
      get(socket, *small);
      if (small->at(0) == 0) put(socket, *small);
      for (int i = 0; i < small->at(0); ++i) put(socket, *large);
    }
  };
  const auto ping = [=] {
    small->at(0) = 0;
    put((*ends)[0].number(), *small);
    get((*ends)[0].number(), *small);
  };
  const auto take = [=](int count) {
    small->at(0) = static_cast<char>(count);
    put((*ends)[0].number(), *small);
    for (int i = 0; i < count; ++i) get((*ends)[0].number(), *large);
  };
  return {.name = name, .serve = serve, .ping = ping, .take_messages = take};
}

Tag tagged(std::int32_t index, MessageKind kind = MessageKind::kProbe) {
  return {.kind = kind, .index = index};
}

// Opens the communicator of a process, once, in that process: its threads are not there after a
// fork.
using Open = std::function<std::unique_ptr<Communicator>(int process)>;

Transport make_communicator(const std::string& name, const Open& open_one) {
  const auto own = std::make_shared<std::unique_ptr<Communicator>>();
  const auto open = [own, open_one](int process) -> Communicator& {
    if (!*own) *own = open_one(process);
    return **own;
  };
  const at::Tensor small = at::zeros({static_cast<std::int64_t>(kSmall)}, at::kByte);
  const at::Tensor large = at::ones({static_cast<std::int64_t>(kLarge)}, at::kByte);
  const auto serve = [=] {
    Communicator& self = open(1);
    for (;;) {
      const int wanted = self.receive(0, tagged(0)).at(0)[0].item<int>();
      if (wanted == 0) self.send(0, tagged(0), {small});
      for (int i = 0; i < wanted; ++i) self.send(0, tagged(i, MessageKind::kGradientSum), {large});
    }
  };
  const auto ping = [=] {
    Communicator& self = open(0);
    self.send(1, tagged(0), {small});
    (void)self.receive(1, tagged(0));
  };
  const auto take = [=](int count) {
    Communicator& self = open(0);
    self.send(1, tagged(0), {at::full_like(small, count)});
    for (int i = 0; i < count; ++i) (void)self.receive(1, tagged(i, MessageKind::kGradientSum));
  };
  return {.name = name, .serve = serve, .ping = ping, .take_messages = take};
}

Open over_links(std::vector<std::vector<PeerSockets>> sockets, const LinkOptions& options) {
  const auto all = std::make_shared<std::vector<std::vector<PeerSockets>>>(std::move(sockets));
  return [all, options](int process) {
    const auto links =
        std::make_shared<PeerLinks>(std::move(all->at(static_cast<std::size_t>(process))), options);
    all->clear();
    return std::move(make_process_communicators(links, 1, {process, {0, 1}})[0]);
  };
}

Open over_gloo() {
  const auto listener = std::make_shared<Descriptor>(listen_at({}));
  return [listener](int process) {
    GlooPlace place{.process = process,
                    .processes = 2,
                    .store = address_of(*listener),
                    .listener = {},
                    .name = "bench"};
    if (process == 0) place.listener = std::move(*listener);
    const auto links = std::make_shared<GlooLinks>(std::make_unique<GlooGroup>(std::move(place)),
                                                   GlooLinkOptions{});
    return std::move(make_gloo_communicators(links, 1, {process, {0, 1}}, {})[0]);
  };
}

std::vector<std::vector<PeerSockets>> make_tcp_sockets() {
  std::vector<std::vector<PeerSockets>> sockets(2);
  for (auto& row : sockets) row.resize(2);
  SocketPair steps = make_tcp_pair();
  SocketPair bulk = make_tcp_pair();
  sockets[0][1] = {std::move(steps[0]), std::move(bulk[0])};
  sockets[1][0] = {std::move(steps[1]), std::move(bulk[1])};
  return sockets;
}

void start(Transport& transport) {
  transport.other = fork();
  if (transport.other == 0) {
    transport.serve();
    _exit(0);
  }
}

void stop(const Transport& transport) {
  kill(transport.other, SIGKILL);
  waitpid(transport.other, nullptr, 0);
}

// Fills the tables of one round.
void measure(Transport& transport) {
  std::vector<double> pings;
  for (int i = 0; transport.ping && i < kPings; ++i) {
    pings.push_back(seconds_of(transport.ping) / 2 * 1e6);
  }
  if (!pings.empty()) transport.latencies.push_back(find_spread(pings).median);
  const double seconds = seconds_of([&] { transport.take_messages(kLargeMessages); });
  transport.speeds.push_back(static_cast<double>(kLarge) * kLargeMessages / seconds / 1e9);
}

// The memory is there before the fork, and so at the same address in the other process. `other` is
// its number once it is started.
Transport make_memory(const std::shared_ptr<pid_t>& other) {
  const auto theirs = std::make_shared<std::vector<char>>(kLarge, 'x');
  const auto ours = std::make_shared<std::vector<char>>(kLarge);
  const auto serve = [theirs] {
    for (;;) pause();
  };
  const auto take = [=](int count) {
    const auto address = reinterpret_cast<std::uintptr_t>(theirs->data());
    for (int i = 0; i < count; ++i) {
      if (!read_memory(*other, address, ours->data(), kLarge)) std::exit(1);
    }
  };
  return {.name = "read memory", .serve = serve, .ping = {}, .take_messages = take};
}

std::string to_text(const std::vector<double>& values, int decimals) {
  if (values.empty()) return "-";
  const Spread spread = find_spread(values);
  return to_range_text(spread.median, spread.least, spread.most, decimals);
}

int compare(int rounds) {
  std::vector<Transport> transports;
  transports.push_back(make_bare("unix", make_socket_pair()));
  transports.push_back(make_communicator("communicator over unix",
                                         over_links(make_socket_pairs(2), {.lends = false})));
  transports.push_back(make_bare("tcp", make_tcp_pair()));
  transports.push_back(
      make_communicator("communicator over tcp", over_links(make_tcp_sockets(), {.lends = false})));
  const auto other = std::make_shared<pid_t>(0);
  transports.push_back(make_memory(other));
  const std::size_t memory = transports.size() - 1;
  transports.push_back(
      make_communicator("communicator, lending", over_links(make_socket_pairs(2), {})));
  transports.push_back(make_communicator("communicator over gloo", over_gloo()));
  for (Transport& transport : transports) start(transport);
  *other = transports[memory].other;
  for (int round = 0; round < rounds; ++round) {
    for (Transport& transport : transports) measure(transport);
  }
  for (const Transport& transport : transports) stop(transport);
  std::printf("%-24s %24s %24s\n", "", "1 KiB one way, us", "16 MiB, GB/s");
  for (const Transport& transport : transports) {
    std::printf("%-24s %24s %24s\n", transport.name.c_str(),
                to_text(transport.latencies, 1).c_str(), to_text(transport.speeds, 2).c_str());
  }
  return 0;
}

}  // namespace
}  // namespace frazil

int main(int count, char** arguments) {
  return frazil::compare(count > 1 ? std::atoi(arguments[1]) : 9);
}
