#include "planner/partition/replica_levels.h"

#include <gtest/gtest.h>

#include "tests/support/sample_models.h"

namespace frazil {
namespace {

std::vector<std::vector<int>> numbers_of(const std::vector<std::vector<DeviceId>>& placed) {
  std::vector<std::vector<int>> numbers;
  for (const std::vector<DeviceId>& devices : placed) {
    std::vector<int>& own = numbers.emplace_back();
    for (const DeviceId device : devices) own.push_back(device.value);
  }
  return numbers;
}

TEST(ReplicaLevels, AreHostsWithEquallyManyDevices) {
  Cluster cluster = make_uniform_cluster(4, Bytes{1}, {{}, {1'000}});
  EXPECT_EQ(find_devices_per_host(cluster), 4);
  ASSERT_EQ(find_replica_levels(cluster).size(), 1U);
  EXPECT_EQ(find_replica_levels(cluster).front().machines, 4);
  cluster.hosts.push_back({"other", Bytes{}});
  for (const std::size_t d : {std::size_t{2}, std::size_t{3}}) cluster.devices[d].host = HostId{1};
  EXPECT_EQ(find_devices_per_host(cluster), 2);
  ASSERT_EQ(find_replica_levels(cluster).size(), 2U);
  cluster.devices[1].host = HostId{1};
  EXPECT_EQ(find_devices_per_host(cluster), 4) << "one device and three";
}

TEST(ReplicaLevels, FillAHostBeforeTheNext) {
  using Numbers = std::vector<std::vector<int>>;
  EXPECT_EQ(numbers_of(place_replicas({{3}, {1}}, 4)), (Numbers{{0, 1, 2}, {3}}));
  // Each of two hosts has both stages.
  EXPECT_EQ(numbers_of(place_replicas({{1, 2}, {1, 2}}, 2)), (Numbers{{0, 2}, {1, 3}}));
  // A stage on two hosts, then one on a third host.
  EXPECT_EQ(numbers_of(place_replicas({{2, 2}, {2, 1}}, 2)), (Numbers{{0, 2, 1, 3}, {4, 5}}));
  // What does not fit into the rest of a host goes to the next one.
  EXPECT_EQ(numbers_of(place_replicas({{1, 1}, {2, 1}}, 2)), (Numbers{{0}, {2, 3}}));
}

TEST(ReplicaLevels, MakeStagesOfRanges) {
  const Stage stage = make_replicated_stage({LayerId{0}, LayerId{1}, LayerId{4}}, {DeviceId{2}});
  EXPECT_EQ(stage.layers,
            (std::vector<LayerRange>{{LayerId{0}, LayerId{1}}, {LayerId{4}, LayerId{4}}}));
  EXPECT_EQ(stage.devices, std::vector<DeviceId>{DeviceId{2}});
}

}  // namespace
}  // namespace frazil
