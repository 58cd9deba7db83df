#include "profiles/cluster_shape.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "profiles/cluster_json.h"
#include "profiles/cluster_presets.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr Link kFast{Duration{10}, {1000}};
constexpr Link kSlow{Duration{70}, {50}};

ClusterShape shape_of(int devices, int per_host) {
  ClusterShape shape;
  shape.devices = devices;
  shape.per_host = per_host;
  shape.memory = Bytes{1 << 20};
  shape.within = kFast;
  shape.between = kSlow;
  return shape;
}

TEST(ClusterShape, PutsNeighboursOnOneHostAndTheRestOnTheLast) {
  const Cluster cluster = make_cluster(shape_of(7, 3));
  ASSERT_EQ(cluster.hosts.size(), 3U);
  for (int device = 0; device < 7; ++device) {
    EXPECT_EQ(cluster.devices[static_cast<std::size_t>(device)].host, HostId{device / 3});
  }
}

TEST(ClusterShape, HasTheLinkWithinBetweenDevicesOfAHostAndTheOtherElsewhere) {
  for (const auto& [devices, per_host] : {std::pair{7, 3}, {4, 4}, {4, 9}, {5, 1}, {1, 1}}) {
    const Cluster cluster = make_cluster(shape_of(devices, per_host));
    for (int from = 0; from < devices; ++from) {
      for (int to = 0; to < devices; ++to) {
        const Link wanted = from == to ? Link{} : from / per_host == to / per_host ? kFast : kSlow;
        EXPECT_EQ(cluster.link(DeviceId{from}, DeviceId{to}), wanted) << from << " to " << to;
      }
    }
  }
}

TEST(ClusterShape, IsReadBackFromItsFile) {
  ClusterShape shape = shape_of(6, 2);
  shape.provenance["source"] = "a test";
  const Cluster cluster = make_cluster(shape);
  EXPECT_EQ(parse_cluster(to_json(cluster), "c.json"), cluster);
}

TEST(ClusterShape, OfTooManyLinksIsRefused) {
  EXPECT_THROW(make_cluster(shape_of(kMostDevices, kMostDevices / 2)), InputError);
  EXPECT_NO_THROW(make_cluster(shape_of(4096, 8)));
}

TEST(ClusterPresets, HaveNamesOfTheirOwnSourcesAndSizes) {
  std::set<std::string_view> names;
  for (const DevicePreset& preset : all_device_presets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_GT(preset.memory.count, 0);
    EXPECT_GT(preset.per_host, 0);
    EXPECT_GT(preset.within.bandwidth.count, 0);
    EXPECT_GT(preset.within.latency.count(), 0);
    EXPECT_FALSE(preset.source.empty() || preset.latency_source.empty());
  }
  for (const LinkPreset& preset : all_link_presets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_GT(preset.link.bandwidth.count, 0);
    EXPECT_FALSE(preset.source.empty() || preset.latency_source.empty());
  }
}

}  // namespace
}  // namespace frazil
