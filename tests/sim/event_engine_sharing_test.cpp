// Tests tasks under way that share links and cores against time lines computed by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "sim/cost_model.h"
#include "sim/event_engine.h"

namespace frazil {
namespace {

using Times = std::vector<TaskTimes>;

// Runs tasks on lanes of their own, each from a moment on, that draw on the same resources.
class Together {
 public:
  explicit Together(const std::vector<std::int64_t>& capacities) {
    for (const std::int64_t capacity : capacities) options_.sharing.add_resource(capacity);
  }

  Together& add(std::int64_t from, std::int64_t price, std::int64_t rate,
                const std::vector<ResourceId>& resources = {0}) {
    const WorkId wait = add_work(from);
    const WorkId work = add_work(price);
    options_.sharing.draw(work, rate, resources);
    const TaskId waits = graph_.add_task(graph_.add_lane(DeviceId{0}, Lane::kHost), wait);
    const TaskId task = graph_.add_task(graph_.add_lane(DeviceId{0}, Lane::kSend), work);
    graph_.add_dependency(task, waits);
    return *this;
  }

  Times times() const {
    const EventTimes all = simulate_events(graph_, prices_, options_);
    EXPECT_FALSE(all.rounded);
    Times times;
    for (TaskId task = 1; task < graph_.size(); task += 2) times.push_back(all.of[task]);
    return times;
  }

 private:
  WorkId add_work(std::int64_t price) {
    prices_.emplace_back(price);
    return graph_.add_work(Fixed{});
  }

  TaskGraph graph_;
  std::vector<Duration> prices_;
  EventOptions options_;
};

TEST(EventSharing, ATransferAloneTakesItsPrice) {
  EXPECT_EQ(Together({10}).add(5, 100, 10).times(), Times({{5, 105}}));
}

TEST(EventSharing, TwoEqualTransfersOverOneLinkTakeTwiceAsLong) {
  EXPECT_EQ(Together({10}).add(0, 100, 10).add(0, 100, 10).times(), Times({{0, 200}, {0, 200}}));
}

TEST(EventSharing, ALinkWideEnoughForBothSlowsNeither) {
  EXPECT_EQ(Together({20}).add(0, 100, 10).add(0, 100, 10).times(), Times({{0, 100}, {0, 100}}));
}

TEST(EventSharing, ANarrowerResourceSlowsEvenATransferAlone) {
  EXPECT_EQ(Together({4}).add(0, 100, 10).times(), Times({{0, 250}}));
}

//   0 ... 30   the first alone: 30 of 100 done
//  30 .. 130   both at half rate: the second does its 50, the first 50 more
// 130 .. 150   the first alone: the last 20
TEST(EventSharing, ATransferThatJoinsMidwaySlowsBothFromThenOn) {
  EXPECT_EQ(Together({10}).add(0, 100, 10).add(30, 50, 10).times(), Times({{0, 150}, {30, 130}}));
}

//   0 ..  10   the first alone                left: 90
//  10 ..  17   two at 1/2                     left: 86 1/2, 96 1/2
//  17 .. 277   three at 1/3, 86 2/3 each      left: none since 276 1/2, 9 5/6, 13 1/3
// 277 .. 297   two at 1/2, 10 each            left: none since 296 2/3, 3 1/3
// 297 .. 301   the last alone                 left: none since 300 1/3
TEST(EventSharing, RemaindersAreKeptExactlyAndEndsAreRoundedUp) {
  EXPECT_EQ(Together({1}).add(0, 100, 1).add(10, 100, 1).add(17, 100, 1).times(),
            Times({{0, 277}, {10, 297}, {17, 301}}));
}

// Rates of 1/n are neither decimal fractions nor binary ones; yet n transfers take exactly n times
// as long, and one that has shared with 1, 2, ... 11 others ends on the exact nanosecond.
TEST(EventSharing, ThirdsAndSeventhsAddUp) {
  for (int n = 1; n <= 40; ++n) {
    Together together({1'000'000'007});
    for (int i = 0; i < n; ++i) together.add(0, 999'999'937, 1'000'000'007);
    EXPECT_EQ(together.times(), Times(static_cast<std::size_t>(n), {0, n * 999'999'937L})) << n;
  }
  // The k-th transfer joins at (k - 1) x 27720; 27720 is a multiple of 1 to 12. When the last
  // joins, the first has done 27720 x (1 + 1/2 + ... + 1/11) = 83711 and goes on at 1/12.
  Together together({1});
  for (int k = 1; k <= 12; ++k) together.add((k - 1) * 27'720, 100'000, 1);
  EXPECT_EQ(together.times().front(), (TaskTimes{0, 11 * 27'720 + 12 * (100'000 - 83'711)}));
}

// A link of 10 comes before one of 4. The transfer over both gets 2, as does the one over the
// second alone; the one over the first has the remaining 8. A transfer that ends lets the others
// speed up.
TEST(EventSharing, SharesAreMaxMinFairOverSeveralLinks) {
  EXPECT_EQ(Together({10, 4})
                .add(0, 10, 10, {0, 1})  // 100 at 2
                .add(0, 40, 10, {0})     // 400 at 8
                .add(0, 10, 10, {1})     // 100 at 2
                .times(),
            Times({{0, 50}, {0, 50}, {0, 50}}));
  // The third transfer ends at 25 with 50 at 2. The other two go on at 4 and 6, the first to
  // 37 1/2; the second then has done 25 x 8 + 13 x 6 = 278 and does the last 122 at 10.
  EXPECT_EQ(Together({10, 4}).add(0, 10, 10, {0, 1}).add(0, 40, 10, {0}).add(0, 5, 10, {1}).times(),
            Times({{0, 38}, {0, 51}, {0, 25}}));
}

TEST(EventSharing, ALinkGivesAllItHasUntilThereIsNothingLeftToDo) {
  // Each transfer joins while others are under way, so the link is never idle: the last ends when
  // the sum is done, but for the part of a nanosecond by which each end is rounded up.
  Together together({3});
  std::int64_t sum = 0;
  for (int i = 0; i < 20; ++i) {
    const std::int64_t price = 50 + 13 * i;
    together.add(7 * i, price, 3);
    sum += price;
  }
  std::int64_t last = 0;
  for (const TaskTimes& task : together.times()) last = std::max(last, task.end);
  EXPECT_LE(sum, last);
  EXPECT_LE(last, sum + 20);
}

// Puts devices 0 and 1 on one host, 2 and 3 on another; links have 1 byte per ns.
Cluster make_two_hosts() {
  Cluster cluster = make_uniform_cluster(
      4, Bytes{1}, {.latency = Duration{0}, .bandwidth = BytesPerSecond{1'000'000'000}});
  cluster.hosts.push_back(cluster.hosts.front());
  cluster.hosts.back().name = "other";
  cluster.devices[2].host = HostId{1};
  cluster.devices[3].host = HostId{1};
  return cluster;
}

// Returns the ends of transfers of 100 bytes, each on a lane of its own.
std::vector<std::int64_t> ends_of(const std::vector<std::pair<int, int>>& transfers,
                                  const Cluster& cluster, const Capacities& capacities) {
  TaskGraph graph;
  for (const auto& [from, to] : transfers) {
    const WorkId work = graph.add_work(Transfer{DeviceId{from}, DeviceId{to}, Bytes{100}});
    graph.add_task(graph.add_lane(DeviceId{from}, Lane::kSend), work);
  }
  EventOptions options;
  options.sharing = share(graph, cluster, capacities);
  const ModelProfile without_layers;
  const Prices prices = price_all(graph, {without_layers, cluster});
  std::vector<std::int64_t> ends;
  for (const TaskTimes& task : simulate_events(graph, prices.of_work, options).of) {
    ends.push_back(task.end);
  }
  return ends;
}

using Ends = std::vector<std::int64_t>;

TEST(Sharing, TransfersShareTheSendersWayOutAndTheReceiversWayIn) {
  const Cluster cluster = make_two_hosts();
  const Capacities ways = find_capacities(cluster);
  EXPECT_EQ(ends_of({{0, 1}, {0, 2}}, cluster, ways), Ends({200, 200}));
  EXPECT_EQ(ends_of({{0, 2}, {1, 2}}, cluster, ways), Ends({200, 200}));
  EXPECT_EQ(ends_of({{0, 1}, {2, 3}}, cluster, ways), Ends({100, 100}));
  EXPECT_EQ(ends_of({{0, 1}, {1, 0}}, cluster, ways), Ends({100, 100})) << "both directions";
}

TEST(Sharing, HostsShareTheirWaysToOtherHosts) {
  const Cluster cluster = make_two_hosts();
  Capacities ways = find_capacities(cluster);
  ways.host_out = {BytesPerSecond{1'000'000'000}, BytesPerSecond{0}};
  EXPECT_EQ(ends_of({{0, 2}, {1, 3}}, cluster, ways), Ends({200, 200}));
  EXPECT_EQ(ends_of({{2, 0}, {3, 1}}, cluster, ways), Ends({100, 100})) << "unlimited";
  EXPECT_EQ(ends_of({{0, 1}, {1, 3}}, cluster, ways), Ends({100, 100})) << "within a host";
  ways.host_in = {BytesPerSecond{0}, BytesPerSecond{500'000'000}};
  EXPECT_EQ(ends_of({{0, 2}, {1, 3}}, cluster, ways), Ends({400, 400}));
}

TEST(Sharing, ALinkSlowerThanBothWaysIsSharedItself) {
  Cluster cluster = make_two_hosts();
  cluster.links.push_back(
      {DeviceId{0}, DeviceId{2}, {.latency = {}, .bandwidth = BytesPerSecond{250'000'000}}});
  const Capacities ways = find_capacities(cluster);
  EXPECT_EQ(ends_of({{0, 2}}, cluster, ways), Ends({400}));
  EXPECT_EQ(ends_of({{0, 2}, {0, 2}}, cluster, ways), Ends({800, 800}));
  // The transfer over the slow link takes 1/4 of the way out and leaves 3/4.
  EXPECT_EQ(ends_of({{0, 2}, {0, 1}}, cluster, ways), Ends({400, 134}));
}

TEST(Sharing, WaysHaveTheBandwidthOfTheFastestLink) {
  Cluster cluster = make_two_hosts();
  cluster.links = {{DeviceId{0}, DeviceId{1}, {.latency = {}, .bandwidth = BytesPerSecond{5}}},
                   {DeviceId{1}, DeviceId{0}, {.latency = {}, .bandwidth = BytesPerSecond{0}}},
                   {DeviceId{2}, DeviceId{3}, {.latency = {}, .bandwidth = BytesPerSecond{7}}},
                   {DeviceId{3}, DeviceId{2}, {.latency = {}, .bandwidth = {3'000'000'000}}}};
  const Capacities ways = find_capacities(cluster);
  const BytesPerSecond usual{1'000'000'000};
  const BytesPerSecond unlimited{0};
  EXPECT_EQ(ways.out, (std::vector{usual, unlimited, usual, BytesPerSecond{3'000'000'000}}));
  EXPECT_EQ(ways.in, (std::vector{unlimited, usual, BytesPerSecond{3'000'000'000}, usual}));
}

TEST(Sharing, ComputesShareTheCoresOfTheirHost) {
  const Cluster cluster = make_two_hosts();
  TaskGraph graph;
  for (int device = 0; device < 4; ++device) {
    for (int i = 0; i < (device == 0 ? 2 : 1); ++i) {
      const WorkId work =
          graph.add_work(Compute{.device = DeviceId{device}, .micro_batch_size = 1, .parts = {}});
      graph.add_task(graph.add_lane(DeviceId{device}, Lane::kCompute), work);
    }
  }
  EventOptions options;
  options.sharing =
      share(graph, cluster, {.out = {}, .in = {}, .host_out = {}, .host_in = {}, .cores = {2, 2}});
  const std::vector<Duration> prices(graph.works().size(), Duration{100});
  // The first host has three tasks on two cores, the second two on two.
  EXPECT_EQ(simulate_events(graph, prices, options).of,
            Times({{0, 150}, {0, 150}, {0, 150}, {0, 100}, {0, 100}}));
}

// Two devices run the backwards of two micro-batches each, an all-reduce of the first one's
// gradients while the second runs, and a message that crosses the all-reduce.
//
//   d0 compute     |B0        |B1        |
//   d0 collective             |reduce ...      200 alone, 250 beside the message
//   d0 send                     |message|      50 alone, 100 beside the all-reduce
//   d1 compute     |B0        |B1        |
//   d1 collective             |reduce ...
TEST(Sharing, AnAllReduceOverlapsWithBackwardAndSharesLinksWithMessages) {
  const Cluster cluster = make_uniform_cluster(
      2, Bytes{1}, {.latency = Duration{0}, .bandwidth = BytesPerSecond{1'000'000'000}});
  TaskGraph graph;
  const WorkId backward = graph.add_work(Fixed{Duration{100}});
  const WorkId wait = graph.add_work(Fixed{Duration{120}});
  // Each device sends 2 (R - 1) / R x 200 bytes = 200 bytes.
  const WorkId reduce = graph.add_work(Collective{.kind = CollectiveKind::kRingAllReduce,
                                                  .devices = {DeviceId{0}, DeviceId{1}},
                                                  .size = Bytes{200},
                                                  .owned = {}});
  const WorkId message = graph.add_work(Transfer{DeviceId{0}, DeviceId{1}, Bytes{50}});
  std::vector<TaskId> reduces;
  for (int device = 0; device < 2; ++device) {
    const LaneId compute = graph.add_lane(DeviceId{device}, Lane::kCompute);
    const TaskId first = graph.add_task(compute, backward);
    graph.add_task(compute, backward);
    const LaneId collective = graph.add_lane(DeviceId{device}, Lane::kCollective);
    reduces.push_back(graph.add_task(collective, reduce));
    graph.add_dependency(reduces.back(), first);
  }
  const TaskId waits = graph.add_task(graph.add_lane(DeviceId{0}, Lane::kHost), wait);
  const TaskId send = graph.add_task(graph.add_lane(DeviceId{0}, Lane::kSend), message);
  graph.add_dependency(send, waits);

  EventOptions options;
  options.sharing = share(graph, cluster, find_capacities(cluster));
  options.meetings = find_meetings(graph);
  const ModelProfile without_layers;
  const Prices prices = price_all(graph, {without_layers, cluster});
  const EventTimes times = simulate_events(graph, prices.of_work, options);
  for (const TaskId task : reduces) EXPECT_EQ(times.of[task], (TaskTimes{100, 350}));
  EXPECT_EQ(times.of[send], (TaskTimes{120, 220}));
  EXPECT_EQ(times.of[1], (TaskTimes{100, 200})) << "the second backward";

  options.sharing = {};
  const EventTimes alone = simulate_events(graph, prices.of_work, options);
  EXPECT_EQ(alone.of[reduces[0]], (TaskTimes{100, 300}));
  EXPECT_EQ(alone.of[send], (TaskTimes{120, 170}));
}

// Makes collective works 0 and 1 over devices 0 and 1; `orders[d]` is the order in which d enters
// them.
TaskGraph make_collectives(const std::vector<std::vector<WorkId>>& orders) {
  TaskGraph graph;
  for (int i = 0; i < 2; ++i) {
    graph.add_work(Collective{.kind = CollectiveKind::kRingAllReduce,
                              .devices = {DeviceId{0}, DeviceId{1}},
                              .size = Bytes{100},
                              .owned = {}});
  }
  for (std::size_t device = 0; device < orders.size(); ++device) {
    const LaneId lane = graph.add_lane(DeviceId{device}, Lane::kCollective);
    for (const WorkId work : orders[device]) graph.add_task(lane, work);
  }
  return graph;
}

TEST(Meetings, AreTheTasksOfACollectiveOnEachOfItsDevices) {
  EXPECT_EQ(find_meetings(make_collectives({{0, 1, 0}, {1, 0, 0}})),
            (std::vector<Meeting>{{0, 4}, {2, 5}, {1, 3}}));
  EXPECT_THROW(find_meetings(make_collectives({{0, 0}, {0}})), std::logic_error);
}

TEST(Meetings, BeginWhenTheLastIsThereAndEndTogether) {
  TaskGraph graph = make_collectives({{0}, {0}});
  const WorkId late = graph.add_work(Fixed{});
  const TaskId last = graph.add_task(graph.add_lane(DeviceId{1}, Lane::kCompute), late);
  graph.add_dependency(1, last);
  EventOptions options;
  options.meetings = find_meetings(graph);
  const std::vector<Duration> prices = {Duration{100}, Duration{0}, Duration{30}};
  EXPECT_EQ(simulate_events(graph, prices, options).of, Times({{30, 130}, {30, 130}, {0, 30}}));
}

TEST(Meetings, EnteredInUnequalOrdersNeverBegin) {
  const TaskGraph graph = make_collectives({{0, 1}, {1, 0}});
  EventOptions options;
  options.meetings = find_meetings(graph);
  const std::vector<Duration> prices = {Duration{100}, Duration{100}};
  try {
    simulate_events(graph, prices, options);
    FAIL() << "no deadlock";
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "deadlock: task 0 on device 0 waits for task 3 on device 1 waits for task 2 on "
                 "device 1 waits for task 1 on device 0 waits for task 0 on device 0");
  }
}

}  // namespace
}  // namespace frazil
