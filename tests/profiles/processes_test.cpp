#include "profiles/processes.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "profiles/cluster_json.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Makes a host for each number of devices.
Cluster make_hosts(const std::vector<int>& devices) {
  Cluster cluster;
  for (std::size_t h = 0; h < devices.size(); ++h) {
    cluster.hosts.push_back({"host" + std::to_string(h), Bytes{}});
    for (int d = 0; d < devices[h]; ++d) {
      const std::string name = "d" + std::to_string(cluster.devices.size());
      cluster.devices.push_back({.name = name, .host = HostId{h}, .memory_limit = Bytes{1}});
    }
  }
  return cluster;
}

std::vector<int> processes_of(const Cluster& cluster) {
  std::vector<int> processes;
  for (const Device& device : cluster.devices) processes.push_back(device.process.value);
  return processes;
}

TEST(Processes, AreOneInAClusterThatTellsNothingOfThem) {
  Cluster cluster = make_hosts({2, 2});
  EXPECT_FALSE(tells_processes(cluster));
  EXPECT_EQ(count_processes(cluster), 1);
  EXPECT_FALSE(span_processes(cluster, all_devices(cluster)));
  EXPECT_EQ(count_in_largest_process(cluster), 4);
}

TEST(Processes, AreThoseOfTheHostsOnceAClusterTellsOfThem) {
  Cluster named = make_hosts({2, 2});
  named.devices[0].process = ProcessId{7};
  EXPECT_EQ(count_processes(named), 3);
  Cluster with_round = make_hosts({2, 2});
  with_round.commit_round = Duration{5};
  Cluster with_class = make_hosts({2, 2});
  with_class.link_classes[LinkClass::kNetwork] = Link{};
  for (const Cluster& cluster : {with_round, with_class}) {
    EXPECT_TRUE(tells_processes(cluster));
    EXPECT_EQ(count_processes(cluster), 2);
    EXPECT_FALSE(span_processes(cluster, std::vector{DeviceId{0}, DeviceId{1}}));
    EXPECT_TRUE(span_processes(cluster, std::vector{DeviceId{1}, DeviceId{2}}));
  }
}

TEST(Processes, GiveEveryPairAClassThatIsCounted) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Cluster cluster = make_hosts({int(random() % 4), 1 + int(random() % 4), int(random() % 4)});
    for (Device& device : cluster.devices) {
      device.process = ProcessId(static_cast<int>(random() % 3) - 1);
      if (device.process.value >= 0) device.process.value += 2 * device.host.value;
    }
    std::vector<DeviceId> devices;
    for (const DeviceId device : all_devices(cluster)) {
      if (random() % 4 > 0) devices.push_back(device);
    }
    PairCounts counted{};
    for (const DeviceId a : devices) {
      for (const DeviceId b : devices) {
        if (a == b) continue;
        const Device& one = cluster.devices[a.index()];
        const Device& other = cluster.devices[b.index()];
        const std::size_t wanted = one.host != other.host         ? 2
                                   : one.process != other.process ? 1
                                                                  : 0;
        EXPECT_EQ(static_cast<std::size_t>(cluster.class_of(a, b)), wanted);
        ++counted[wanted];
      }
    }
    EXPECT_EQ(count_pairs(cluster, devices), counted);
  }
}

TEST(Processes, AreDealtEquallyManyToEachHostAndTakeNeighbours) {
  Cluster cluster = make_hosts({4, 4});
  deal_processes(cluster, 4, "--procs");
  EXPECT_EQ(processes_of(cluster), (std::vector{0, 0, 1, 1, 2, 2, 3, 3}));
  deal_processes(cluster, 2, "--procs");
  EXPECT_EQ(processes_of(cluster), (std::vector{0, 0, 0, 0, 1, 1, 1, 1}));
  Cluster uneven = make_hosts({5, 3});
  deal_processes(uneven, 4, "--procs");
  EXPECT_EQ(processes_of(uneven), (std::vector{0, 0, 0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(count_in_largest_process(uneven), 3);
}

std::string refusal(Cluster cluster, int processes) {
  try {
    deal_processes(cluster, processes, "--procs");
  } catch (const InputError& error) {
    return error.what();
  }
  return "dealt";
}

TEST(Processes, ThatWouldSpanHostsOrHaveNoDeviceAreRefused) {
  EXPECT_EQ(refusal(make_hosts({4, 4}), 3),
            "--procs: found 3 processes on 2 hosts, expected equally many on each host, as a "
            "process is on one host");
  EXPECT_EQ(refusal(make_hosts({4, 2}), 6),
            "--procs: found 3 processes for 2 devices of host \"host1\", expected at least one "
            "device for each process");
  EXPECT_EQ(refusal(make_hosts({4, 2}), 4), "dealt");
}

}  // namespace
}  // namespace frazil
