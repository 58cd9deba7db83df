#include "tests/gpu/nccl_parts.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

namespace frazil {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

at::Tensor make_bytes(std::int64_t bytes, double value) {
  return at::full({bytes / 4}, value, at::TensorOptions(at::kFloat).device(at::kCUDA, 0));
}

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("wrong: " + what);
}

bool is_all(const at::Tensor& tensor, double value) { return tensor.eq(value).all().item<bool>(); }

std::string number(const std::string& name, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "\"%s\":%.3f", name.c_str(), value);
  return text;
}

std::string number(const std::string& name, std::int64_t value) {
  return "\"" + name + "\":" + std::to_string(value);
}

// One way and back; returns the time of the round trip.
Milliseconds ping(const NcclPair& pair, NcclEnd end, const at::Tensor& there,
                  const at::Tensor& back) {
  const NcclTable& table = pair.table();
  const auto send = [&](const at::Tensor& tensor) {
    return pair.run(end, [&] { table.send(end, tensor, pair.peer()); });
  };
  const auto receive = [&](const at::Tensor& tensor) {
    return pair.run(end, [&] { table.receive(end, tensor, pair.peer()); });
  };
  const auto start = Clock::now();
  if (pair.rank() == 0) {
    send(there);
    receive(back);
  } else {
    receive(back);
    send(there);
  }
  return since_start(start);
}

// Both measure equally often: rank 0 says whether there is time for another round.
bool goes_on(const NcclPair& pair, Clock::time_point start, milliseconds limit) {
  bool more = since_start(start) < limit;
  if (pair.rank() == 0) {
    pair.socket().put(more);
    return more;
  }
  return pair.socket().get<bool>();
}

template <class Measure>
std::vector<double> measure_for(const NcclPair& pair, milliseconds limit, const Measure& measure) {
  measure();
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < 30 && (times.size() < 3 || goes_on(pair, start, limit))) {
    times.push_back(measure());
  }
  std::sort(times.begin(), times.end());
  return times;
}

void measure_messages(const NcclPair& pair) {
  auto start = Clock::now();
  const NcclEnd end = pair.open();
  print_line(pair, "init", number("ms", since_start(start).count()));
  const NcclTable& table = pair.table();
  for (const std::int64_t bytes : {1024, 65536, 1 << 20, 16 << 20}) {
    const at::Tensor own = make_bytes(bytes, pair.rank() + 1);
    const at::Tensor other = make_bytes(bytes, 0);
    const auto trips =
        measure_for(pair, milliseconds(900), [&] { return ping(pair, end, own, other).count(); });
    expect(is_all(other, pair.peer() + 1), "a message comes as it was sent");
    const double one_way = trips[trips.size() / 2] / 2;
    print_line(pair, "p2p",
               number("bytes", bytes) + "," + number("one_way_us", one_way * 1000) + "," +
                   number("gb_per_s", static_cast<double>(bytes) / one_way / 1e6) + "," +
                   number("trips", static_cast<std::int64_t>(trips.size())));
  }
  for (const std::int64_t bytes : {1024, 1 << 20, 16 << 20}) {
    const at::Tensor sum = make_bytes(bytes, 0);
    const auto times = measure_for(pair, milliseconds(700), [&] {
      sum.fill_(pair.rank() + 1);
      const double time = pair.run(end, [&] { table.all_reduce(end, sum); }).count();
      expect(is_all(sum, 3), "an all-reduce adds up");
      return time;
    });
    const double median = times[times.size() / 2];
    print_line(pair, "all_reduce",
               number("bytes", bytes) + "," + number("us", median * 1000) + "," +
                   number("gb_per_s", static_cast<double>(bytes) / median / 1e6));
  }
  pair.close(end);
}

void try_collectives(const NcclPair& pair) {
  const NcclTable& table = pair.table();
  const NcclEnd end = pair.open();
  const auto cuda = at::TensorOptions(at::kFloat).device(at::kCUDA, 0);
  const at::Tensor all = at::arange(8, cuda) * (pair.rank() + 1);
  const at::Tensor own = at::zeros({4}, cuda);
  pair.run(end, [&] { table.reduce_scatter(end, all, own); });
  expect(own.equal(at::arange(4 * pair.rank(), 4 * pair.rank() + 4, cuda) * 3),
         "a reduce-scatter adds up each rank's share");
  const at::Tensor gathered = at::zeros({8}, cuda);
  pair.run(end, [&] { table.all_gather(end, own, gathered); });
  expect(gathered.equal(at::arange(8, cuda) * 3), "an all-gather has every rank's share");
  const at::Tensor told = at::full({4}, pair.rank() + 5, cuda);
  pair.run(end, [&] { table.broadcast(end, told, 1); });
  expect(is_all(told, 6), "a broadcast comes from its root");

  auto start = Clock::now();
  const NcclEnd part = table.split(end, 0, -pair.rank());
  pair.wait_ready(part);
  print_line(pair, "split", number("ms", since_start(start).count()));
  const at::Tensor sum = make_bytes(1024, pair.rank() + 1);
  pair.run(part, [&] { table.all_reduce(part, sum); });
  expect(is_all(sum, 3), "a split communicator adds up");
  pair.close(part);
  pair.socket().meet();

  if (pair.rank() == 0) {
    start = Clock::now();
    const NcclEnd alone = table.shrink(end, {1}, /*aborts=*/false);
    pair.wait_ready(alone);
    print_line(pair, "shrink", number("ms", since_start(start).count()));
    pair.run(alone, [&] { table.all_reduce(alone, sum); });
    expect(is_all(sum, 3), "a communicator of one rank adds up one");
    table.abort(alone);
  }
  pair.socket().meet();

  start = Clock::now();
  table.revoke(end);
  pair.wait_ready(end);
  print_line(pair, "revoke", number("ms", since_start(start).count()));
  pair.socket().meet();
  table.destroy(end);
}

// NCCL's own estimates, which it gives for communicators whose calls block.
void print_estimates(const NcclPair& pair) {
  const NcclTable& table = pair.table();
  NcclId id;
  if (pair.rank() == 0) {
    id = table.make_id();
    pair.socket().put(id);
  } else {
    id = pair.socket().get<NcclId>();
  }
  const NcclEnd end =
      table.init(id, {.gpu = 0, .ranks = 2, .rank = pair.rank(), .most_blocks = 2, .blocks = true});
  for (const std::int64_t bytes : {1024, 65536, 1 << 20, 16 << 20}) {
    const at::Tensor tensor = make_bytes(bytes, 1);
    table.group_start();
    table.all_reduce(end, tensor);
    const double sum = table.simulate_end();
    table.group_start();
    if (pair.rank() == 0) {
      table.send(end, tensor, 1);
    } else {
      table.receive(end, tensor, 0);
    }
    const double message = table.simulate_end();
    print_line(pair, "estimate",
               number("bytes", bytes) + "," + number("all_reduce_us", sum * 1e6) + "," +
                   number("p2p_us", message * 1e6));
  }
  pair.socket().meet();
  table.abort(end);
}

void abort_and_go_on(const NcclPair& pair, NcclEnd end, const std::string& part,
                     Milliseconds noticed) {
  auto start = Clock::now();
  pair.table().abort(end);
  const Milliseconds aborted = since_start(start);
  start = Clock::now();
  const NcclEnd alone = pair.begin_alone();
  pair.wait_ready(alone, /*heeds_peer=*/false);
  const at::Tensor sum = make_bytes(1024, 7);
  pair.run(
      alone, [&] { pair.table().all_reduce(alone, sum); }, /*heeds_peer=*/false);
  expect(is_all(sum, 7), "the survivor goes on with a new communicator");
  print_line(pair, part,
             number("noticed_ms", noticed.count()) + "," + number("abort_ms", aborted.count()) +
                 "," + number("new_communicator_ms", since_start(start).count()));
  pair.table().abort(alone);
  expect(aborted < std::chrono::seconds(2), "an abort returns within two seconds");
}

// Rank 1 is killed while rank 0 is inside `operations`; both have exchanged a message before.
void lose_peer(const NcclPair& pair, const std::string& part,
               const std::function<void(NcclEnd)>& operations) {
  const NcclEnd end = pair.open();
  const at::Tensor own = make_bytes(1024, pair.rank() + 1);
  const at::Tensor other = make_bytes(1024, 0);
  (void)ping(pair, end, own, other);
  pair.socket().meet();
  if (pair.rank() == 1) {
    std::this_thread::sleep_for(milliseconds(200));
    ::raise(SIGKILL);
  }
  const auto start = Clock::now();
  try {
    pair.run(end, [&] { operations(end); });
  } catch (const std::runtime_error&) {
    return abort_and_go_on(pair, end, part, since_start(start) - milliseconds(200));
  }
  throw std::runtime_error("wrong: an operation with a killed process came to its end");
}

void lose_peer_in_receive(const NcclPair& pair) {
  const at::Tensor into = make_bytes(16 << 20, 0);
  lose_peer(pair, "kill_in_receive",
            [&](NcclEnd end) { pair.table().receive(end, into, pair.peer()); });
}

void lose_peer_in_send(const NcclPair& pair) {
  const at::Tensor from = make_bytes(64 << 20, 1);
  lose_peer(pair, "kill_in_send", [&](NcclEnd end) { pair.table().send(end, from, pair.peer()); });
}

void lose_peer_in_init(const NcclPair& pair) {
  if (pair.rank() == 1) {
    (void)pair.socket().get<NcclId>();
    std::this_thread::sleep_for(milliseconds(200));
    ::raise(SIGKILL);
  }
  const auto start = Clock::now();
  const NcclEnd end = pair.begin();
  try {
    pair.wait_ready(end);
  } catch (const std::runtime_error&) {
    return abort_and_go_on(pair, end, "kill_in_init", since_start(start) - milliseconds(200));
  }
  throw std::runtime_error("wrong: a communicator with a killed process came about");
}

std::int64_t count_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

// Twenty communicators, every other one aborted.
void repeat(const NcclPair& pair) {
  const auto start = Clock::now();
  std::vector<std::int64_t> descriptors;
  for (int round = 0; round < 20 && goes_on(pair, start, milliseconds(14000)); ++round) {
    const NcclEnd end = pair.open();
    const at::Tensor sum = make_bytes(1024, 1);
    pair.run(end, [&] { pair.table().all_reduce(end, sum); });
    if (round % 2 == 0) {
      pair.table().abort(end);
    } else {
      pair.close(end);
    }
    pair.socket().meet();
    descriptors.push_back(count_descriptors());
  }
  std::string list;
  for (const std::int64_t one : descriptors)
    list += (list.empty() ? "" : ",") + std::to_string(one);
  print_line(
      pair, "repeat",
      number("rounds", static_cast<std::int64_t>(descriptors.size())) + ",\"descriptors\":[" +
          list + "]," +
          number("ms_each", since_start(start).count() /
                                static_cast<double>(std::max<std::size_t>(descriptors.size(), 1))));
  // The first rounds open what stays open.
  expect(descriptors.size() >= 6, "there was time for six rounds");
  expect(descriptors.back() <= descriptors[3], "communicators leave no descriptors behind");
}

}  // namespace

std::vector<NcclPart> nccl_parts() {
  return {{"messages", 25, false, measure_messages},
          {"kill in a receive", 12, true, lose_peer_in_receive},
          {"kill in init", 12, true, lose_peer_in_init},
          {"training", 25, false, train_over_nccl},
          {"collectives", 15, false, try_collectives},
          {"repeat", 25, false, repeat},
          {"kill in a send", 12, true, lose_peer_in_send},
          {"estimates", 10, false, print_estimates}};
}

void print_line(const NcclPair& pair, const std::string& part, const std::string& members) {
  if (pair.rank() != 0) return;
  std::printf("{\"part\":\"%s\",%s}\n", part.c_str(), members.c_str());
  std::fflush(stdout);
}

}  // namespace frazil
