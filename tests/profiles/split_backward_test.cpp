#include "profiles/split_backward.h"

#include <gtest/gtest.h>

#include <random>

namespace frazil {
namespace {

constexpr std::uint64_t kSeed = 20261126;

Layer layer_of(std::int64_t parameters, std::int64_t backward, bool has_loss = false) {
  Layer layer;
  layer.parameters = {parameters};
  layer.has_loss = has_loss;
  layer.costs.emplace_back();
  layer.costs.front().backward_input = Duration{backward};
  return layer;
}

Edge edge_of(std::size_t from, std::size_t to, EdgeKind kind = EdgeKind::kGradient) {
  return {.from = LayerId{from}, .to = LayerId{to}, .kind = kind, .tensor_bytes_per_sample = {{0}}};
}

// I and W of each layer, in ns.
std::vector<std::pair<std::int64_t, std::int64_t>> parts_of(const ModelProfile& profile) {
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  for (const Layer& layer : profile.layers) {
    const CostSample& cost = layer.costs.front();
    EXPECT_EQ(cost.backward_weight_alone, cost.backward_weight);
    parts.emplace_back(cost.backward_input.count(), cost.backward_weight.count());
  }
  return parts;
}

using Parts = std::vector<std::pair<std::int64_t, std::int64_t>>;

TEST(SplitBackward, IsAllWWhereTheInputsNeedNoGradient) {
  ModelProfile chain;
  chain.layers = {layer_of(8, 7), layer_of(8, 7), layer_of(0, 7, true)};
  chain.edges = {edge_of(0, 1), edge_of(1, 2)};
  const MovedBackward moved = split_whole_backwards(chain);
  EXPECT_EQ(parts_of(chain), (Parts{{0, 7}, {3, 4}, {7, 0}}));
  EXPECT_EQ(moved.moved, Duration{0});
  EXPECT_TRUE(chain.backward_was_split_by_rule);
}

TEST(SplitBackward, IsAllWBehindADetachedEdgeAndBehindLayersWithoutParameters) {
  ModelProfile chain;
  chain.layers = {layer_of(8, 6), layer_of(8, 5), layer_of(0, 0), layer_of(8, 3, true)};
  chain.edges = {edge_of(0, 1, EdgeKind::kDetached), edge_of(0, 3), edge_of(1, 3), edge_of(2, 3)};
  split_whole_backwards(chain);
  EXPECT_EQ(parts_of(chain), (Parts{{0, 6}, {0, 5}, {0, 0}, {1, 2}}));
  ModelProfile first;
  first.layers = {layer_of(0, 0), layer_of(8, 5), layer_of(8, 4, true)};
  first.edges = {edge_of(0, 1), edge_of(1, 2)};
  split_whole_backwards(first);
  EXPECT_EQ(parts_of(first), (Parts{{0, 0}, {0, 5}, {2, 2}}));
}

TEST(SplitBackward, OfALayerThatComputesNoGradientCountsAtTheNearestThatDoes) {
  // 0 and 1 hold nothing to train; 4 reaches no loss and reads 2.
  ModelProfile graph;
  graph.layers = {layer_of(0, 10), layer_of(0, 1), layer_of(8, 2), layer_of(8, 4, true),
                  layer_of(8, 100)};
  graph.edges = {edge_of(0, 1), edge_of(1, 3), edge_of(2, 3), edge_of(2, 4)};
  const MovedBackward moved = split_whole_backwards(graph);
  EXPECT_EQ(moved.moved, Duration{111});
  EXPECT_EQ(moved.lost, Duration{0});
  EXPECT_EQ(parts_of(graph), (Parts{{0, 0}, {0, 0}, {0, 102}, {7, 8}, {0, 0}}));
}

TEST(SplitBackward, IsToldWhereNothingTrains) {
  ModelProfile chain;
  chain.layers = {layer_of(0, 5), layer_of(0, 6, true)};
  chain.edges = {edge_of(0, 1)};
  EXPECT_EQ(split_whole_backwards(chain).lost, Duration{11});
}

// The sum over the parts that a step runs, by a rule of its own: walks over all paths.
bool trains_above(const ModelProfile& profile, std::size_t layer) {
  return std::any_of(profile.edges.begin(), profile.edges.end(), [&](const Edge& edge) {
    if (edge.to.index() != layer || edge.kind != EdgeKind::kGradient) return false;
    return profile.layers[edge.from.index()].parameters.count > 0 ||
           trains_above(profile, edge.from.index());
  });
}

bool reaches_loss(const ModelProfile& profile, std::size_t layer) {
  return profile.layers[layer].has_loss ||
         std::any_of(profile.edges.begin(), profile.edges.end(), [&](const Edge& edge) {
           return edge.from.index() == layer && edge.kind == EdgeKind::kGradient &&
                  reaches_loss(profile, edge.to.index());
         });
}

TEST(SplitBackward, KeepsTheSumOfRandomGraphs) {
  std::mt19937_64 random(kSeed);
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  for (int graph = 0; graph < 300; ++graph) {
    ModelProfile profile;
    const int count = 2 + below(8);
    Duration sum{0};
    for (int l = 0; l < count; ++l) {
      const bool is_last = l + 1 == count;
      profile.layers.push_back(
          layer_of(is_last || below(2) == 0 ? 8 : 0, below(1000), is_last || below(8) == 0));
      sum += profile.layers.back().costs.front().backward_input;
    }
    for (int from = 0; from < count; ++from) {
      for (int to = from + 1; to < count; ++to) {
        if (below(3) > 0) continue;
        profile.edges.push_back(edge_of(static_cast<std::size_t>(from),
                                        static_cast<std::size_t>(to),
                                        below(5) == 0 ? EdgeKind::kDetached : EdgeKind::kGradient));
      }
    }
    split_whole_backwards(profile);
    Duration run{0};
    for (std::size_t l = 0; l < profile.layers.size(); ++l) {
      if (!reaches_loss(profile, l)) continue;
      const CostSample& cost = profile.layers[l].costs.front();
      if (trains_above(profile, l)) run += cost.backward_input;
      if (profile.layers[l].parameters.count > 0) run += cost.backward_weight;
    }
    EXPECT_EQ(run, sum) << "graph " << graph << " of seed " << kSeed;
  }
}

}  // namespace
}  // namespace frazil
