#include "profiles/cluster.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <limits>
#include <random>

#include "profiles/cluster_json.h"
#include "profiles/error.h"
#include "tests/support/golden.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

// Makes two hosts with three devices and one slow link.
Cluster two_hosts() {
  Cluster cluster;
  cluster.hosts = {{"node0", {std::int64_t{64} << 30}}, {"node1", {std::int64_t{32} << 30}}};
  cluster.devices = {
      {.name = "node0/core0", .host = HostId(0), .memory_limit = {1 << 30}},
      {.name = "node0/core1", .host = HostId(0), .memory_limit = {1 << 30}, .time_ppm = 1'500'000},
      {.name = "node1/core0",
       .host = HostId(1),
       .memory_limit = {1 << 29},
       .action_overhead = Duration{2'000},
       .step_overhead = Duration{50'000}}};
  cluster.default_link = {Duration{1'000}, {10'000'000'000}};
  cluster.links = {{DeviceId(0), DeviceId(2), {Duration{50'000}, {125'000'000}}},
                   {DeviceId(2), DeviceId(0), {Duration{60'000}, {125'000'000}}}};
  cluster.provenance = {{"command", "by hand"}, {"note", "a \"quoted\"\nword"}};
  return cluster;
}

std::string refusal(const Cluster& cluster) {
  try {
    validate(cluster, "c.json");
  } catch (const InputError& error) {
    EXPECT_EQ(error.line(), 0);
    EXPECT_EQ(error.file(), "c.json");
    return error.found();
  }
  return "valid";
}

TEST(Cluster, FindsTheLinkOfEveryPairOfDevices) {
  const Cluster cluster = two_hosts();
  for (std::int32_t from = 0; from < 3; ++from) {
    for (std::int32_t to = 0; to < 3; ++to) {
      Link expected = from == to ? Link{} : cluster.default_link;
      for (const DirectedLink& link : cluster.links) {
        if (link.from.value == from && link.to.value == to) expected = link.link;
      }
      EXPECT_EQ(cluster.link(DeviceId(from), DeviceId(to)), expected) << from << " to " << to;
    }
  }
  EXPECT_THROW(cluster.link(DeviceId(0), DeviceId(3)), std::logic_error);
  EXPECT_THROW(cluster.link(DeviceId(-1), DeviceId(0)), std::logic_error);
}

// Makes the two hosts with two processes on the first, and a link for each class.
Cluster three_processes() {
  Cluster cluster = two_hosts();
  cluster.devices[0].process = ProcessId(4);
  cluster.devices[1].process = ProcessId(0);
  cluster.link_classes[LinkClass::kProcess] = Link{Duration{300}, {20'000'000'000}};
  cluster.link_classes[LinkClass::kHost] = Link{Duration{4'000}, {5'000'000'000}};
  cluster.link_classes[LinkClass::kNetwork] = Link{Duration{30'000}, {1'000'000'000}};
  cluster.commit_round = Duration{40'000};
  return cluster;
}

TEST(Cluster, APairHasItsOwnLinkElseThatOfItsClassElseTheDefault) {
  Cluster cluster = three_processes();
  cluster.devices.push_back(
      {.name = "node0/core2", .host = HostId(0), .memory_limit = {1}, .process = ProcessId(0)});
  const auto link = [&](int from, int to) { return cluster.link(DeviceId(from), DeviceId(to)); };
  EXPECT_EQ(link(0, 2), cluster.links[0].link);
  EXPECT_EQ(link(1, 3), cluster.link_classes[LinkClass::kProcess]);
  EXPECT_EQ(link(0, 1), cluster.link_classes[LinkClass::kHost]);
  EXPECT_EQ(link(1, 2), cluster.link_classes[LinkClass::kNetwork]);
  EXPECT_EQ(link(1, 1), Link{});
  cluster.link_classes[LinkClass::kHost].reset();
  EXPECT_EQ(link(0, 1), cluster.default_link);
}

TEST(Cluster, UniformMeansEqualDevicesOnOneHost) {
  const Link link{Duration{7}, {9}};
  const Cluster cluster = make_uniform_cluster(3, Bytes{100}, link);
  EXPECT_EQ(refusal(cluster), "valid");
  ASSERT_EQ(cluster.devices.size(), 3u);
  EXPECT_EQ(cluster.hosts, (std::vector<Host>{{"host0", {300}}}));
  EXPECT_EQ(cluster.devices[2].memory_limit, Bytes{100});
  EXPECT_EQ(cluster.devices[2].time_ppm, 1'000'000);
  EXPECT_EQ(cluster.link(DeviceId(2), DeviceId(0)), link);
  EXPECT_THROW(make_uniform_cluster(0, Bytes{1}, {}), std::logic_error);
}

TEST(Cluster, UniformMayHaveUnlimitedMemory) {
  const Cluster cluster = make_uniform_cluster(4, Bytes{kLargest}, {});
  EXPECT_EQ(cluster.hosts[0].memory, Bytes{kLargest});
  EXPECT_EQ(parse_cluster(to_json(cluster), "c.json"), cluster);
}

TEST(Cluster, RefusesWhatCannotBeAPark) {
  EXPECT_EQ(refusal(two_hosts()), "valid");
  EXPECT_EQ(refusal(Cluster{}), "no device");
  const auto refuse = [](auto change) {
    Cluster cluster = two_hosts();
    change(cluster);
    return refusal(cluster);
  };
  EXPECT_EQ(refuse([](Cluster& c) { c.hosts[1].name = "node0"; }), "two hosts \"node0\"");
  EXPECT_EQ(refuse([](Cluster& c) { c.hosts[1].memory = {-1}; }), "host \"node1\" with -1 bytes");
  EXPECT_EQ(refuse([](Cluster& c) { c.devices[1].name = ""; }), "a device without a name");
  EXPECT_EQ(refuse([](Cluster& c) { c.devices[1].name = "node0/core0"; }),
            "two devices \"node0/core0\"");
  EXPECT_EQ(refuse([](Cluster& c) { c.devices[0].host = HostId(2); }),
            "device \"node0/core0\" on host 2");
  EXPECT_EQ(refuse([](Cluster& c) { c.devices[0].host = HostId(-1); }),
            "device \"node0/core0\" on host -1");
  EXPECT_EQ(refuse([](Cluster& c) { c.devices[0].memory_limit = {-5}; }),
            "device \"node0/core0\" with -5 bytes");
  EXPECT_EQ(refuse([](Cluster& c) { c.devices[0].time_ppm = 0; }),
            "device \"node0/core0\" with time_ppm 0");
  EXPECT_EQ(refuse([](Cluster& c) { c.devices[0].action_overhead = Duration{-1}; }),
            "device \"node0/core0\" with an action overhead of -1 ns");
  EXPECT_EQ(refuse([](Cluster& c) { c.devices[0].step_overhead = Duration::max(); }),
            "device \"node0/core0\" with a step overhead of 9223372036854775807 ns");
  EXPECT_EQ(refuse([](Cluster& c) { c.default_link.latency = Duration{-1}; }),
            "the default link with a latency of -1 ns");
  EXPECT_EQ(refuse([](Cluster& c) { c.links[0].link.bandwidth = {-1}; }),
            "a link from device 0 to 2 with -1 bytes per second");
  EXPECT_EQ(refuse([](Cluster& c) { c.links[1].to = DeviceId(3); }), "a link from device 2 to 3");
  EXPECT_EQ(refuse([](Cluster& c) { c.links[1].to = DeviceId(2); }), "a link from device 2 to 2");
  EXPECT_EQ(refuse([](Cluster& c) { c.links[1] = c.links[0]; }), "a link from device 0 to 2 again");
  EXPECT_EQ(refuse([](Cluster& c) { std::swap(c.links[0], c.links[1]); }),
            "a link from device 0 to 2 out of order");
  EXPECT_EQ(refuse([](Cluster& c) { c.devices[0].process = c.devices[2].process = ProcessId(3); }),
            "process 3 on host \"node0\" and host \"node1\"");
  EXPECT_EQ(refuse([](Cluster& c) { c.devices[0].process = ProcessId(-2); }),
            "device \"node0/core0\" in process -2");
  EXPECT_EQ(refuse([](Cluster& c) { c.commit_round = Duration{-1}; }), "a commit round of -1 ns");
  EXPECT_EQ(refuse([](Cluster& c) {
              c.link_classes[LinkClass::kHost] = Link{Duration{0}, {-1}};
            }),
            "the link of class host with -1 bytes per second");
}

TEST(ClusterJson, LooksLikeThis) {
  EXPECT_TRUE(matches_golden("profiles/two_hosts.cluster.json", to_json(two_hosts())));
}

TEST(ClusterJson, TellsProcessesLikeThis) {
  EXPECT_TRUE(matches_golden("profiles/three_processes.cluster.json", to_json(three_processes())));
  EXPECT_EQ(parse_cluster(to_json(three_processes()), "c.json"), three_processes());
}

TEST(ClusterJson, RefusesAProcessOnTwoHostsWhereItIsNamedAgain) {
  std::string text = to_json(three_processes());
  const std::string device = "\"step_overhead_ns\": 50000";
  text.replace(text.find(device), device.size(), device + ", \"process\": 4");
  try {
    parse_cluster(text, "c.json");
    FAIL() << "not refused";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "c.json:15: found `4`, which is a process of host \"node0\" at "
                 "$.devices[2].process, expected every process on one host");
  }
}

TEST(ClusterJson, RoundTrips) {
  const Cluster cluster = two_hosts();
  const Cluster again = parse_cluster(to_json(cluster), "c.json");
  EXPECT_EQ(again, cluster);
  EXPECT_EQ(to_json(again), to_json(cluster));
}

TEST(ClusterJson, FillsInWhatIsLeftOut) {
  const Cluster cluster = parse_cluster(
      R"({"format": "frazil.cluster", "version": 1,
          "hosts": [{"name": "h", "memory_bytes": 8}],
          "devices": [{"name": "d", "host": "h", "memory_limit_bytes": 5}]})",
      "c.json");
  EXPECT_EQ(cluster.devices[0].time_ppm, 1'000'000);
  EXPECT_EQ(cluster.devices[0].action_overhead, Duration{0});
  EXPECT_EQ(cluster.devices[0].step_overhead, Duration{0});
  EXPECT_EQ(cluster.default_link, Link{});
  EXPECT_TRUE(cluster.links.empty());
  EXPECT_TRUE(cluster.provenance.empty());
}

TEST(ClusterJson, TakesLinksInAnyOrder) {
  const std::string text = to_json(two_hosts());
  const std::string first = "{\"from\": 0";
  const std::string second = "{\"from\": 2";
  const std::size_t start = text.find(first);
  const std::size_t middle = text.find(second);
  const std::size_t end = text.find('}', middle) + 1;
  const std::string swapped = text.substr(0, start) + text.substr(middle, end - middle) + ", " +
                              text.substr(start, text.find('}', start) + 1 - start) +
                              text.substr(end);
  ASSERT_NE(swapped, text);
  EXPECT_EQ(parse_cluster(swapped, "c.json"), two_hosts());
}

TEST(ClusterJson, RandomClustersRoundTrip) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t end) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
    };
    const auto any_link = [&] {
      return Link{Duration{below(kLargestQuantity + 1)}, {below(kLargest)}};
    };
    Cluster cluster =
        make_uniform_cluster(static_cast<int>(1 + below(6)), {below(kLargest)}, any_link());
    cluster.hosts.push_back({"second \"host\"", {below(kLargest)}});
    const auto count = static_cast<std::int32_t>(cluster.devices.size());
    for (Device& device : cluster.devices) {
      device.host = HostId(static_cast<std::int32_t>(below(2)));
      device.time_ppm = 1 + below(kLargestTimePpm);
      device.action_overhead = Duration{below(kLargestQuantity + 1)};
      device.step_overhead = Duration{below(kLargestQuantity + 1)};
      if (below(2) == 0) device.process = ProcessId(device.host.value + 2 * int(below(1'000'000)));
    }
    for (const LinkClass each : kLinkClasses) {
      if (below(3) == 0) cluster.link_classes[each] = any_link();
    }
    if (below(3) == 0) cluster.commit_round = Duration{below(kLargestQuantity + 1)};
    for (std::int32_t from = 0; from < count; ++from) {
      for (std::int32_t to = 0; to < count; ++to) {
        if (from != to && below(2) == 0) {
          cluster.links.push_back({DeviceId(from), DeviceId(to), any_link()});
        }
      }
    }
    cluster.provenance["seed"] = std::to_string(seed);
    ASSERT_EQ(refusal(cluster), "valid");
    ASSERT_EQ(parse_cluster(to_json(cluster), "c.json"), cluster);
  }
}

TEST(ClusterJson, WritesAndReadsFiles) {
  std::string pattern = (std::filesystem::temp_directory_path() / "frazil-cluster-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path path = std::filesystem::path(pattern) / "c.json";
  write_cluster(two_hosts(), path);
  EXPECT_EQ(read_cluster(path), two_hosts());
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace frazil
