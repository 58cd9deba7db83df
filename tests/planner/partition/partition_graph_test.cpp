// Compares contiguous splits of work graphs with trying all splits, with published optima, and with
// each other.

#include "planner/partition/partition_graph.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "profiles/error.h"
#include "profiles/import/work_graph_json.h"
#include "tests/support/public_data.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

// Follows the definition on the nodes of a graph: classes of nodes take stages, tried one after
// another. A forward edge never runs to an earlier stage, and a backward edge of a class without
// forward nodes never to a later one.
class AllSplits {
 public:
  explicit AllSplits(const WorkGraph& graph) : graph_(graph) {
    std::map<std::int64_t, std::size_t> colours;
    for (const WorkNode& node : graph.nodes) {
      std::size_t number = classes_;
      if (node.colour) number = colours.try_emplace(*node.colour, classes_).first->second;
      classes_ = std::max(classes_, number + 1);
      class_of_.push_back(number);
    }
    std::vector<char> has_forward(classes_);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      if (!graph.nodes[n].is_backward) has_forward[class_of_[n]] = 1;
    }
    for (const WorkEdge& edge : graph.edges) {
      const std::size_t from = class_of_[edge.from];
      const std::size_t to = class_of_[edge.to];
      if (!graph.nodes[edge.to].is_backward) {
        order_.emplace(from, to);
      } else if (graph.nodes[edge.from].is_backward &&
                 (has_forward[from] == 0 || has_forward[to] == 0)) {
        order_.emplace(to, from);
      }
    }
    stage_of_.resize(classes_);
  }

  struct Best {
    WorkTime load = WorkTime::max();
    int devices = 0;
  };

  Best find() {
    std::vector<char> hosts(static_cast<std::size_t>(graph_.devices + graph_.hosts));
    std::fill(hosts.begin(), hosts.begin() + graph_.hosts, char{1});
    std::sort(hosts.begin(), hosts.end());
    do {
      is_host_ = hosts;
      place(0);
    } while (std::next_permutation(hosts.begin(), hosts.end()));
    return best_;
  }

 private:
  void place(std::size_t next) {
    if (next == classes_) return weigh();
    for (std::size_t stage = 0; stage < is_host_.size(); ++stage) {
      stage_of_[next] = stage;
      const bool is_legal = std::all_of(order_.begin(), order_.end(), [&](const auto& edge) {
        return std::max(edge.first, edge.second) != next ||
               stage_of_[edge.first] <= stage_of_[edge.second];
      });
      if (is_legal) place(next + 1);
    }
  }

  void weigh() {
    Best split{WorkTime{0}, 0};
    for (std::size_t stage = 0; stage < is_host_.size(); ++stage) {
      WorkTime load{0};
      Bytes memory;
      bool is_used = false;
      for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
        const WorkNode& node = graph_.nodes[n];
        if (stage_of_[class_of_[n]] == stage) {
          if (is_host_[stage] == 0 && !node.runs_on_device) return;
          is_used = true;
          load += is_host_[stage] != 0 ? node.host_load : node.load;
          memory += node.memory;
        }
        if (is_host_[stage] == 0) load += transfer_of(n, stage);
      }
      if (is_host_[stage] == 0 && memory > graph_.device_memory) return;
      split.load = std::max(split.load, load);
      if (is_used && is_host_[stage] == 0) ++split.devices;
    }
    if (std::pair(split.load, split.devices) < std::pair(best_.load, best_.devices)) best_ = split;
  }

  // Returns what a stage pays for the output of a node: once, in either direction and however many
  // nodes read it.
  WorkTime transfer_of(std::size_t node, std::size_t stage) const {
    const bool is_here = stage_of_[class_of_[node]] == stage;
    for (const WorkEdge& edge : graph_.edges) {
      if (edge.from != node) continue;
      if (is_here != (stage_of_[class_of_[edge.to]] == stage)) return edge.transfer;
    }
    return WorkTime{0};
  }

  const WorkGraph& graph_;
  std::size_t classes_ = 0;
  std::vector<std::size_t> class_of_;
  std::set<std::pair<std::size_t, std::size_t>> order_;
  std::vector<char> is_host_;
  std::vector<std::size_t> stage_of_;
  Best best_;
};

enum class Shape { kChain, kBranches, kTraining };

WorkGraph make_random_graph(std::mt19937_64& random, Shape shape, int most_nodes = 9) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  WorkGraph graph;
  const int nodes = draw(1, most_nodes);
  const int forward = shape == Shape::kTraining ? (nodes + 1) / 2 : nodes;
  const int largest = draw(0, 3) == 0 ? 2 : 50;
  const int largest_transfer = draw(0, 3) == 0 ? 0 : largest / draw(1, 3);
  std::vector<WorkTime> transfers;
  for (int n = 0; n < nodes; ++n) {
    WorkNode node;
    node.id = n;
    node.name = std::to_string(n);
    if (draw(0, 3) != 0) {
      node.load = WorkTime{draw(0, largest)};
      node.host_load = WorkTime{draw(0, 3 * largest)};
    }
    node.memory = Bytes{draw(0, 4)};
    node.is_backward = n >= forward;
    node.runs_on_device = draw(0, 15) != 0;
    // A backward node mirrors a forward node; some mirror none, some share a colour with others.
    if (node.is_backward && draw(0, 4) != 0) node.colour = nodes - 1 - n;
    if (!node.is_backward && (shape == Shape::kTraining || draw(0, 5) == 0)) {
      node.colour = draw(0, 5) == 0 ? draw(0, forward - 1) : n;
    }
    transfers.emplace_back(draw(0, std::max(largest_transfer, 0)));
    graph.nodes.push_back(node);
  }
  const int density = draw(1, 3);
  for (int from = 0; from < nodes; ++from) {
    for (int to = from + 1; to < nodes; ++to) {
      const bool is_next = to == from + 1;
      const bool is_edge = shape == Shape::kChain
                               ? is_next
                               : draw(0, 3) < (is_next ? 3 : 1) && draw(0, density) == 0;
      if (!is_edge) continue;
      graph.edges.push_back({static_cast<std::size_t>(from), static_cast<std::size_t>(to),
                             transfers[static_cast<std::size_t>(from)]});
    }
  }
  graph.devices = draw(1, nodes > 6 ? 3 : 4);
  graph.hosts = draw(0, 3) == 0 ? 1 : 0;
  graph.device_memory = Bytes{draw(0, 1) == 0 ? 1000 : draw(2, 4 * nodes)};
  return graph;
}

void expect_all_nodes_once(const WorkGraph& graph, const GraphPartition& partition) {
  std::set<std::size_t> nodes;
  for (const GraphStage& stage : partition.stages) {
    EXPECT_FALSE(stage.nodes.empty());
    for (const std::size_t node : stage.nodes) EXPECT_TRUE(nodes.insert(node).second);
  }
  EXPECT_EQ(nodes.size(), graph.nodes.size());
}

void expect_best_of_all(const WorkGraph& graph) {
  const AllSplits::Best expected = AllSplits(graph).find();
  try {
    const GraphPartition partition = partition_graph(graph, {});
    ASSERT_EQ(partition.load, expected.load);
    ASSERT_TRUE(partition.is_optimal());
    ASSERT_EQ(graph.devices - partition.idle_devices, expected.devices);
    ASSERT_EQ(partition.idle_reason == IdleReason::kNone, partition.idle_devices == 0);
    expect_all_nodes_once(graph, partition);
  } catch (const InfeasibleError& error) {
    ASSERT_EQ(expected.load, WorkTime::max()) << error.what();
  }
}

class RandomWorkGraphs : public testing::TestWithParam<std::pair<Shape, int>> {};

TEST_P(RandomWorkGraphs, AreSplitAsWellAsByTryingAllSplits) {
  const auto [shape, count] = GetParam();
  for (int seed = 0; seed < draws(count); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    expect_best_of_all(make_random_graph(random, shape));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RandomWorkGraphs,
                         testing::Values(std::pair(Shape::kChain, 1500),
                                         std::pair(Shape::kBranches, 2500),
                                         std::pair(Shape::kTraining, 2000)));

// A limit on ideals or states can make an answer worse, but never wrong.
TEST(GraphPartition, BracketsTheOptimumWhereItMayLookAtLittle) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    WorkGraph graph = make_random_graph(random, Shape::kBranches);
    graph.device_memory = Bytes{1000};
    for (WorkNode& node : graph.nodes) node.runs_on_device = true;
    const WorkTime optimum = partition_graph(graph, {}).load;
    const SplitLimits few_ideals{.ideals = 3, .states = 1'000'000};
    const SplitLimits few_states{.ideals = 1'000,
                                 .states = static_cast<std::int64_t>(seed % 200) + 40};
    for (const SplitLimits& limits : {few_ideals, few_states}) {
      try {
        const GraphPartition partition = partition_graph(graph, limits);
        ASSERT_LE(partition.lower_bound, optimum);
        ASSERT_GE(partition.load, optimum);
        expect_all_nodes_once(graph, partition);
      } catch (const InfeasibleError& error) {
        ASSERT_NE(std::string(error.what()).find("--states allows more"), std::string::npos);
      }
    }
  }
}

TEST(GraphPartition, IsNeverWorseWithMoreDevicesNorWithLittleToLookAt) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    WorkGraph graph = make_random_graph(random, Shape::kBranches, 30);
    graph.device_memory = Bytes{1000};
    graph.hosts = 0;
    for (WorkNode& node : graph.nodes) node.runs_on_device = true;
    const SplitLimits limits{.ideals = seed % 2 == 0 ? 50U : 5'000U, .states = 20'000};
    WorkTime before = WorkTime::max();
    for (graph.devices = 1; graph.devices <= 12; ++graph.devices) {
      const GraphPartition partition = partition_graph(graph, limits);
      ASSERT_LE(partition.load, before) << graph.devices << " devices";
      before = partition.load;
    }
  }
}

WorkNode work(std::int64_t id, int load) {
  WorkNode node;
  node.id = id;
  node.name = "n" + std::to_string(id);
  node.load = WorkTime{load};
  return node;
}

TEST(GraphPartition, LeavesDevicesIdleWhereEveryCutCostsMoreThanItSaves) {
  WorkGraph graph{.nodes = {work(0, 5), work(1, 5)},
                  .edges = {{0, 1, WorkTime{6}}},
                  .devices = 3,
                  .hosts = 0,
                  .device_memory = {}};
  const GraphPartition together = partition_graph(graph, {});
  EXPECT_EQ(together.load, WorkTime{10});
  EXPECT_EQ(together.idle_devices, 2);
  EXPECT_EQ(together.idle_reason, IdleReason::kTransfersCostMore);
  graph.edges[0].transfer = WorkTime{4};
  const GraphPartition apart = partition_graph(graph, {});
  EXPECT_EQ(apart.load, WorkTime{9});
  EXPECT_EQ(apart.idle_devices, 1);
  EXPECT_EQ(apart.idle_reason, IdleReason::kNoPartLeft);
}

TEST(GraphPartition, LeavesDevicesIdleWhereOnePartIsTheLoad) {
  const WorkGraph graph{.nodes = {work(0, 2), work(1, 9), work(2, 1), work(3, 1)},
                        .edges = {{0, 1, {}}, {1, 2, {}}, {2, 3, {}}},
                        .devices = 4,
                        .hosts = 0,
                        .device_memory = {}};
  const GraphPartition partition = partition_graph(graph, {});
  EXPECT_EQ(partition.load, WorkTime{9});
  EXPECT_EQ(partition.stages.size(), 3);
  EXPECT_EQ(partition.idle_devices, 1);
  EXPECT_EQ(partition.idle_reason, IdleReason::kPartAlone);
}

TEST(GraphPartition, CountsAnOutputOnceForAllItsReaders) {
  WorkGraph graph{.nodes = {work(0, 10), work(1, 5), work(2, 5)},
                  .edges = {{0, 1, WorkTime{3}}, {0, 2, WorkTime{3}}},
                  .devices = 2,
                  .hosts = 0,
                  .device_memory = {}};
  EXPECT_EQ(partition_graph(graph, {}).load, WorkTime{13});
}

TEST(GraphPartition, SaysWhatDoesNotFit) {
  WorkGraph graph{.nodes = {work(0, 1), work(1, 1)},
                  .edges = {{0, 1, {}}},
                  .devices = 2,
                  .hosts = 0,
                  .device_memory = Bytes{1024}};
  const auto refusal = [&] {
    try {
      partition_graph(graph, {});
    } catch (const InfeasibleError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  graph.nodes[1].memory = Bytes{2048};
  EXPECT_EQ(
      refusal(),
      "node `n1` and the 0 that must stay with it need 2.00 KiB, but a device holds 1.00 KiB");
  graph.nodes[0].memory = graph.nodes[1].memory = Bytes{1024};
  graph.devices = 1;
  EXPECT_EQ(refusal(), "no contiguous split over 1 devices of 1.00 KiB fits");
  graph.nodes[0].runs_on_device = false;
  EXPECT_EQ(refusal(), "node `n0` runs on a host core only, and there is none");
  graph.hosts = 1;
  EXPECT_EQ(refusal(), "taken");
}

struct PublishedOptimum {
  std::string name;
  std::string load;                     // ms, as it was printed
  IdleReason idle = IdleReason::kNone;  // of the devices that it leaves
};

// Checks that devices are left idle for the expected reason. At an optimum the most loaded device
// holds one part, or a further cut would cost more than it saves.
void expect_a_reason(const GraphPartition& partition, IdleReason expected) {
  EXPECT_EQ(partition.idle_reason, partition.idle_devices > 0 ? expected : IdleReason::kNone);
}

// Up to 6 devices each count is tried, then 8, 16, 32 and 64; with FRAZIL_ALL_DEVICES
// (./test.sh --soak) each count up to 64.
class PublishedOptima : public testing::TestWithParam<PublishedOptimum> {
 protected:
  std::string file() const {
    return "dnn-partitioning/throughput-inputs/" + GetParam().name + ".json";
  }
};

// Loads have six digits, as C++ streams print by default.
TEST_P(PublishedOptima, AreFound) {
  SKIP_WITHOUT_PUBLIC_DATA(file());
  const WorkGraph graph = read_work_graph(public_data(file()));
  const GraphPartition partition = partition_graph(graph, {});
  EXPECT_TRUE(partition.is_optimal());
  EXPECT_EQ(fmt::format("{:.6g}", static_cast<double>(partition.load.count()) / 1e12),
            GetParam().load);
  expect_all_nodes_once(graph, partition);
}

TEST_P(PublishedOptima, AreNeverWorseWithMoreDevicesAndSayWhyTheOthersIdle) {
  SKIP_WITHOUT_PUBLIC_DATA(file());
  WorkGraph graph = read_work_graph(public_data(file()));
  const bool all = std::getenv("FRAZIL_ALL_DEVICES") != nullptr;
  WorkTime before = WorkTime::max();
  int devices_before = 0;
  for (graph.devices = 1; graph.devices <= 64; ++graph.devices) {
    if (!all && graph.devices > 6 && !std::has_single_bit(static_cast<unsigned>(graph.devices)))
      continue;
    SCOPED_TRACE(std::to_string(graph.devices) + " devices");
    const GraphPartition partition = partition_graph(graph, {});
    ASSERT_TRUE(partition.is_optimal());
    ASSERT_LE(partition.load, before);
    const auto used = std::count_if(partition.stages.begin(), partition.stages.end(),
                                    [](const GraphStage& stage) { return !stage.is_host; });
    EXPECT_EQ(partition.idle_devices, graph.devices - used);
    expect_a_reason(partition, GetParam().idle);
    if (used <= devices_before) {
      EXPECT_EQ(partition.load, before);
    }
    before = partition.load;
    devices_before = graph.devices;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PublishedOptima,
                         testing::Values(PublishedOptimum{"LayerGraphs/bert24_training", "41.7458",
                                                          IdleReason::kPartAlone},
                                         PublishedOptimum{"LayerGraphs/resnet50_training",
                                                          "78.6318", IdleReason::kPartAlone},
                                         PublishedOptimum{"OperatorGraphs/bert_l-3_inference",
                                                          "27.9186",
                                                          IdleReason::kTransfersCostMore}));

}  // namespace
}  // namespace frazil
