#include "sim/collective_cost.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace frazil {
namespace {

// Makes links of 1 byte per ns and 100 ns latency, so that times read as bytes.
Cluster make_cluster(int devices) {
  return make_uniform_cluster(devices, Bytes{1 << 30},
                              {Duration{100}, BytesPerSecond{1'000'000'000}});
}

Collective make_collective(CollectiveKind kind, int devices, std::int64_t size,
                           std::vector<int> owned = {}) {
  Collective collective{
      .kind = kind, .devices = {}, .size = Bytes{size}, .owned = std::move(owned)};
  for (int device = 0; device < devices; ++device) {
    collective.devices.emplace_back(device);
  }
  return collective;
}

void expect_cost(const CollectiveCost& cost, int steps, std::int64_t sent, std::int64_t received,
                 std::int64_t time) {
  EXPECT_EQ(cost.steps, steps);
  EXPECT_EQ(cost.sent_by_busiest.count, sent);
  EXPECT_EQ(cost.received_by_busiest.count, received);
  EXPECT_EQ(cost.time.count(), time);
}

TEST(CollectiveCost, ARingOfFourSendsThreeHalvesOfTheMessage) {
  expect_cost(
      collective_cost(make_collective(CollectiveKind::kRingAllReduce, 4, 4000), make_cluster(4)), 6,
      6000, 6000, 600 + 6000);
}

TEST(CollectiveCost, SharesAreRoundedUpToWholeBytes) {
  // A share is ceil(10 / 4) = 3 bytes a step.
  expect_cost(
      collective_cost(make_collective(CollectiveKind::kRingAllReduce, 4, 10), make_cluster(4)), 6,
      18, 18, 618);
}

TEST(CollectiveCost, ATreeMovesTheWholeMessageInEveryStep) {
  // The depth is 2 for 3 and 4 devices, and 3 for 5 to 8.
  for (const int devices : {3, 4}) {
    expect_cost(collective_cost(make_collective(CollectiveKind::kTreeAllReduce, devices, 4000),
                                make_cluster(devices)),
                4, 8000, 8000, 400 + 16000);
  }
  expect_cost(
      collective_cost(make_collective(CollectiveKind::kTreeAllReduce, 5, 4000), make_cluster(5)), 6,
      12000, 12000, 600 + 24000);
}

TEST(CollectiveCost, AnExactTreeShipsEveryMaximalNode) {
  // Shares have 1000 bytes. Device 0 sends its 3 nodes' shares to two others, then its sum to two.
  // Device 1 receives 3 + 2 node shares and 2 sums.
  expect_cost(
      collective_cost(make_collective(CollectiveKind::kExactTreeAllReduce, 3, 3000, {3, 1, 2}),
                      make_cluster(3)),
      4, 8000, 7000, 400 + 8000);
}

TEST(CollectiveCost, AnExactTreeTakesNothingFromAnOwnerWithoutNodes) {
  // Device 0 receives 1 + 1 + 1 node shares and 3 sums; the others send 3 shares and 3 sums.
  expect_cost(
      collective_cost(make_collective(CollectiveKind::kExactTreeAllReduce, 4, 4000, {0, 1, 1, 1}),
                      make_cluster(4)),
      6, 6000, 6000, 6600);
  // Device 0 receives 2 + 2 + 1 node shares and 3 sums; device 1 sends 2 x 3 shares and 3 sums.
  expect_cost(
      collective_cost(make_collective(CollectiveKind::kExactTreeAllReduce, 4, 4000, {0, 2, 2, 1}),
                      make_cluster(4)),
      6, 9000, 8000, 9600);
}

TEST(CollectiveCost, NoOwnerOfAnExactTreeReceivesMoreThanTheBusiestSends) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 200; ++i) {
    std::vector<int> owned(std::uniform_int_distribution<std::size_t>(2, 8)(random));
    for (int& nodes : owned) {
      nodes = std::uniform_int_distribution<int>(0, 9)(random);
    }
    const int devices = static_cast<int>(owned.size());
    const CollectiveCost cost =
        collective_cost(make_collective(CollectiveKind::kExactTreeAllReduce, devices, 5000, owned),
                        make_cluster(devices));
    EXPECT_LE(cost.received_by_busiest, cost.sent_by_busiest);
  }
}

TEST(CollectiveCost, AnExactTreeOfOneNodeEachIsARing) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 50; ++i) {
    const int devices = std::uniform_int_distribution<int>(1, 16)(random);
    const std::int64_t size = std::uniform_int_distribution<std::int64_t>(0, 1 << 20)(random);
    SCOPED_TRACE(devices);
    const Cluster cluster = make_cluster(devices);
    const std::vector<int> ones(static_cast<std::size_t>(devices), 1);
    const CollectiveCost ring =
        collective_cost(make_collective(CollectiveKind::kRingAllReduce, devices, size), cluster);
    expect_cost(
        collective_cost(make_collective(CollectiveKind::kExactTreeAllReduce, devices, size, ones),
                        cluster),
        ring.steps, ring.sent_by_busiest.count, ring.received_by_busiest.count, ring.time.count());
  }
}

TEST(CollectiveCost, AGatherInPartTakesTheBusierDirectionOfTheBusiestDevice) {
  const CollectiveKind gather = CollectiveKind::kAllGather;
  const Cluster cluster = make_cluster(3);
  // Shares have 1000 bytes. A gather in part that sends everything costs as much as a whole gather.
  expect_cost(collective_cost(make_collective(gather, 3, 3000), cluster), 2, 2000, 2000, 2200);
  expect_cost(collective_cost(make_collective(gather, 3, 3000, {2, 2, 2, 2, 2, 2}), cluster), 2,
              2000, 2000, 2200);
  // Device 0 serves the two other devices; then they serve device 0.
  expect_cost(collective_cost(make_collective(gather, 3, 3000, {2, 0, 0, 0, 1, 1}), cluster), 2,
              2000, 1000, 2200);
  expect_cost(collective_cost(make_collective(gather, 3, 3000, {0, 1, 1, 2, 0, 0}), cluster), 2,
              1000, 2000, 2200);
  expect_cost(collective_cost(make_collective(gather, 3, 3000, {1, 0, 0, 0, 0, 1}), cluster), 1,
              1000, 1000, 1100);
}

TEST(CollectiveCost, OneDeviceAloneCostsNothing) {
  const Cluster cluster = make_cluster(1);
  for (const CollectiveKind kind : {CollectiveKind::kRingAllReduce, CollectiveKind::kTreeAllReduce,
                                    CollectiveKind::kExactTreeAllReduce}) {
    expect_cost(collective_cost(make_collective(kind, 1, 4000, {3}), cluster), 0, 0, 0, 0);
  }
}

TEST(CollectiveCost, TakesTheSlowestLinkBetweenItsDevices) {
  Cluster cluster = make_cluster(4);
  cluster.links = {{DeviceId{0}, DeviceId{1}, {Duration{900}, BytesPerSecond{0}}},
                   {DeviceId{1}, DeviceId{0}, {Duration{0}, BytesPerSecond{500'000'000}}},
                   {DeviceId{3}, DeviceId{0}, {Duration{5000}, BytesPerSecond{1}}}};
  // The links among 0, 1, 2 have at worst a latency of 900 and half a byte per ns. The link from 3
  // does not count.
  expect_cost(collective_cost(make_collective(CollectiveKind::kRingAllReduce, 3, 3000), cluster), 4,
              4000, 4000, 3600 + 8000);
}

TEST(CollectiveCost, TakesTheSlowestClassOfLinksBetweenItsDevices) {
  Cluster cluster = make_cluster(4);
  for (int d = 0; d < 4; ++d) cluster.devices[std::size_t(d)].process = ProcessId{d / 2};
  cluster.link_classes[LinkClass::kProcess] = Link{Duration{10}, BytesPerSecond{0}};
  cluster.link_classes[LinkClass::kHost] = Link{Duration{700}, BytesPerSecond{500'000'000}};
  const auto ring = [](int devices) {
    return make_collective(CollectiveKind::kRingAllReduce, devices, 3000);
  };
  // Devices 0 and 1 share a process; device 2 lies in another one.
  expect_cost(collective_cost(ring(2), cluster), 2, 3000, 3000, 20);
  expect_cost(collective_cost(ring(3), cluster), 4, 4000, 4000, 2800 + 8000);
  // Every link between the processes is listed, so the class of the host counts no more.
  for (const int outer : {0, 1}) {
    cluster.links.push_back({DeviceId{outer}, DeviceId{2}, {Duration{40}, BytesPerSecond{0}}});
  }
  for (const int outer : {0, 1}) {
    cluster.links.push_back({DeviceId{2}, DeviceId{outer}, {Duration{30}, BytesPerSecond{0}}});
  }
  expect_cost(collective_cost(ring(3), cluster), 4, 4000, 4000, 160);
}

TEST(CollectiveCost, UnlimitedBandwidthLeavesTheLatency) {
  const Cluster cluster = make_uniform_cluster(4, Bytes{1}, {Duration{100}, BytesPerSecond{0}});
  expect_cost(collective_cost(make_collective(CollectiveKind::kRingAllReduce, 4, 4000), cluster), 6,
              6000, 6000, 600);
}

bool is_refused(const Collective& collective) {
  try {
    collective_cost(collective, make_cluster(2));
  } catch (const std::logic_error&) {
    return true;
  }
  return false;
}

TEST(CollectiveCost, RefusesOwnersThatDoNotMatchTheDevices) {
  const CollectiveKind exact = CollectiveKind::kExactTreeAllReduce;
  EXPECT_TRUE(is_refused(make_collective(exact, 2, 100, {1})));
  EXPECT_TRUE(is_refused(make_collective(exact, 2, 100, {1, -1})));
  EXPECT_FALSE(is_refused(make_collective(exact, 2, 100, {1, 0})));
  EXPECT_TRUE(is_refused(make_collective(CollectiveKind::kAllGather, 2, 100, {1, 1})));
  EXPECT_TRUE(is_refused(make_collective(CollectiveKind::kAllGather, 2, 100, {1, 0, 0, -1})));
  EXPECT_FALSE(is_refused(make_collective(CollectiveKind::kAllGather, 2, 100, {1, 0, 0, 1})));
  EXPECT_TRUE(is_refused(make_collective(CollectiveKind::kRingAllReduce, 0, 100)));
}

}  // namespace
}  // namespace frazil
