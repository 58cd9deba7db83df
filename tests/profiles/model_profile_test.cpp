#include "profiles/model_profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "profiles/error.h"
#include "tests/profiles/model_fixture.h"

namespace frazil {
namespace {

std::string refusal(const ModelProfile& profile) {
  try {
    validate(profile, "m.json");
  } catch (const InputError& error) {
    EXPECT_EQ(error.line(), 0);
    EXPECT_EQ(error.file(), "m.json");
    return error.found();
  }
  return "valid";
}

Layer layer_with_forward(const std::vector<std::pair<int, std::int64_t>>& forward_by_size) {
  Layer layer;
  layer.name = "layer";
  for (const auto& [size, forward] : forward_by_size) {
    layer.costs.push_back({.micro_batch_size = size, .forward = Duration{forward}, .stash = {}});
  }
  return layer;
}

TEST(CostAt, IsTheMeasurementAtAMeasuredSize) {
  const Layer layer = small_model().layers[1];
  for (const CostSample& sample : layer.costs) {
    const LayerCost cost = cost_at(layer, sample.micro_batch_size);
    EXPECT_EQ(cost.cost, sample);
    EXPECT_FALSE(cost.extrapolated);
  }
}

TEST(CostAt, LiesOnTheLineBetweenNeighboursRoundedDown) {
  const Layer layer = layer_with_forward({{2, 100}, {5, 110}, {9, 200}});
  EXPECT_EQ(cost_at(layer, 3).cost.forward.count(), 103);  // 103.3
  EXPECT_EQ(cost_at(layer, 4).cost.forward.count(), 106);  // 106.7
  EXPECT_EQ(cost_at(layer, 6).cost.forward.count(), 132);  // 132.5
  EXPECT_EQ(cost_at(layer, 6).cost.micro_batch_size, 6);
  EXPECT_FALSE(cost_at(layer, 6).extrapolated);
}

TEST(CostAt, KnowsWhatAFrozenLayerKeepsWhereBothNeighboursDo) {
  Layer layer = layer_with_forward({{2, 1}, {4, 1}, {8, 1}});
  for (CostSample& cost : layer.costs) cost.stash = Bytes{100 * cost.micro_batch_size};
  layer.costs[0].stash_frozen = Bytes{10};
  layer.costs[1].stash_frozen = Bytes{30};
  EXPECT_EQ(cost_at(layer, 3).cost.kept(false), Bytes{20});
  EXPECT_EQ(cost_at(layer, 3).cost.kept(true), Bytes{300});
  EXPECT_EQ(cost_at(layer, 6).cost.kept(false), Bytes{600});
  layer.costs = {layer.costs[1]};
  EXPECT_EQ(cost_at(layer, 2).cost.kept(false), Bytes{15});
}

TEST(CostAt, ProlongsTheNearestSegmentAndSaysSo) {
  const Layer layer = layer_with_forward({{2, 100}, {5, 110}, {9, 200}});
  EXPECT_EQ(cost_at(layer, 1).cost.forward.count(), 96);    // 96.7
  EXPECT_EQ(cost_at(layer, 10).cost.forward.count(), 222);  // 222.5
  EXPECT_TRUE(cost_at(layer, 1).extrapolated);
  EXPECT_TRUE(cost_at(layer, 10).extrapolated);
}

TEST(CostAt, ScalesASingleSampleInProportion) {
  const Layer layer = layer_with_forward({{4, 10}});
  EXPECT_EQ(cost_at(layer, 1).cost.forward.count(), 2);  // 2.5
  EXPECT_EQ(cost_at(layer, 8).cost.forward.count(), 20);
  EXPECT_TRUE(cost_at(layer, 8).extrapolated);
  EXPECT_FALSE(cost_at(layer, 4).extrapolated);
}

TEST(CostAt, NeverFallsBelowZero) {
  const Layer steep = layer_with_forward({{4, 10}, {5, 1'000}});
  EXPECT_EQ(cost_at(steep, 1).cost.forward.count(), 0);
  const Layer falling = layer_with_forward({{4, 10}, {5, 1}});
  EXPECT_EQ(cost_at(falling, 6).cost.forward.count(), 0);
  EXPECT_EQ(cost_at(falling, std::numeric_limits<int>::max()).cost.forward.count(), 0);
}

TEST(CostAt, RefusesAProlongedCostThatLeavesTheRange) {
  const Layer layer = layer_with_forward({{1, 0}, {2, kLargestQuantity}});
  EXPECT_THROW(cost_at(layer, 3), InputError);
  EXPECT_THROW(cost_at(layer, std::numeric_limits<int>::max()), InputError);
  const Layer falling = layer_with_forward({{2, kLargestQuantity}, {3, 0}});
  EXPECT_THROW(cost_at(falling, 1), InputError);
}

TEST(CostAt, NeedsASampleAndASize) {
  EXPECT_THROW(cost_at(Layer{}, 1), std::logic_error);
  EXPECT_THROW(cost_at(layer_with_forward({{1, 1}}), 0), std::logic_error);
}

// The reference walks the samples anew and computes in long double, whose 64 bits hold every
// product here (costs below 2^31, sizes below 2^10) without rounding.
long double line_through(const Layer& layer, int size) {
  const std::vector<CostSample>& costs = layer.costs;
  std::size_t high = 1;
  while (high + 1 < costs.size() && costs[high].micro_batch_size < size) ++high;
  const CostSample& a = costs[high - 1];
  const CostSample& b = costs[high];
  const long double slope = static_cast<long double>(b.forward.count() - a.forward.count());
  const long double steps = static_cast<long double>(size - a.micro_batch_size);
  const long double width = static_cast<long double>(b.micro_batch_size - a.micro_batch_size);
  return static_cast<long double>(a.forward.count()) + std::floor(slope * steps / width);
}

TEST(CostAt, AgreesWithALongDoubleReference) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<std::pair<int, std::int64_t>> samples;
    int size = 0;
    for (std::uint64_t count = 2 + random() % 5; count > 0; --count) {
      size += 1 + static_cast<int>(random() % 60);
      samples.emplace_back(size, static_cast<std::int64_t>(random() >> 33));
    }
    const Layer layer = layer_with_forward(samples);
    for (int wanted = 1; wanted <= size + 20; ++wanted) {
      const LayerCost cost = cost_at(layer, wanted);
      const auto expected = static_cast<std::int64_t>(std::max(0.0L, line_through(layer, wanted)));
      ASSERT_EQ(cost.cost.forward.count(), expected) << "at size " << wanted;
      ASSERT_EQ(cost.extrapolated, wanted < samples.front().first || wanted > size);
    }
  }
}

TEST(CostAt, TreatsEveryKindOfCostAlike) {
  Layer layer;
  const auto sample = [](int size, std::int64_t unit) {
    return CostSample{size,
                      Duration{unit},
                      Duration{6 * unit},
                      Duration{2 * unit},
                      Duration{3 * unit},
                      Duration{4 * unit},
                      {5 * unit}};
  };
  layer.costs = {sample(2, 10), sample(4, 30)};
  EXPECT_EQ(cost_at(layer, 3).cost, sample(3, 20));
  EXPECT_EQ(cost_at(layer, 6).cost, sample(6, 50));
}

TEST(Edge, CarriesItsTensorsForEverySample) {
  const Edge edge{LayerId(0), LayerId(1), EdgeKind::kGradient, {{100}, {7}}};
  EXPECT_EQ(edge.bytes(3), Bytes{321});
  const Edge large{LayerId(0), LayerId(1), EdgeKind::kGradient, {{kLargestQuantity}}};
  EXPECT_EQ(large.bytes(1), Bytes{kLargestQuantity});
  EXPECT_THROW(large.bytes(std::numeric_limits<int>::max()), InputError);
}

TEST(ModelHash, IsSixteenHexDigitsThatStay) {
  EXPECT_EQ(model_hash(small_model()), "dd483c4f50275970");
}

TEST(ModelHash, DependsOnStructureAlone) {
  const std::string hash = model_hash(small_model());
  ModelProfile measured_again = small_model();
  measured_again.layers[0].costs[0].forward += Duration{1};
  measured_again.layers[0].costs[0].stash += Bytes{1};
  measured_again.layers[0].update += Duration{1};
  measured_again.layers[0].optimizer_state += Bytes{1};
  measured_again.provenance["date"] = "later";
  measured_again.backward_was_split_by_rule = true;
  EXPECT_EQ(model_hash(measured_again), hash);

  const auto changed = [&](auto change) {
    ModelProfile profile = small_model();
    change(profile);
    return model_hash(profile) != hash;
  };
  EXPECT_TRUE(changed([](ModelProfile& p) { p.model = "other"; }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.blocks[1] = "other"; }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.layers[1].name = "other"; }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.layers[1].block = BlockId(0); }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.layers[1].has_loss = true; }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.layers[1].parameters += Bytes{1}; }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.edges.pop_back(); }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.edges[0].kind = EdgeKind::kDetached; }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.edges[0].tensor_bytes_per_sample[0] += Bytes{1}; }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.tied[0].bytes += Bytes{1}; }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.tied.clear(); }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.tied[0].trainable = false; }));
  EXPECT_TRUE(changed([](ModelProfile& p) { p.layers[1].untrainable = Bytes{1}; }));
}

TEST(ModelHash, TellsListsOfNamesApartByTheirCuts) {
  ModelProfile one = small_model();
  ModelProfile two = small_model();
  one.blocks = {"a\n1:b", "c"};
  two.blocks = {"a", "b\n1:c"};
  EXPECT_NE(model_hash(one), model_hash(two));
}

TEST(ModelProfile, RefusesWhatCannotBeAModel) {
  EXPECT_EQ(refusal(small_model()), "valid");
  EXPECT_EQ(refusal(ModelProfile{}), "no layer");
  const auto refuse = [](auto change) {
    ModelProfile profile = small_model();
    change(profile);
    return refusal(profile);
  };
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[2].has_loss = false; }), "no layer with a loss");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[1].name = "embed"; }), "two layers \"embed\"");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[1].name = ""; }), "a layer without a name");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.blocks[1] = "embedding"; }), "two blocks \"embedding\"");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[2].block = BlockId(3); }),
            "layer \"head\" in block 3");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[1].block = BlockId(-1); }),
            "layer \"attention\" in block -1");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[1].block = BlockId(2); }),
            "layer \"attention\" in block 2 after block 0");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[2].block = BlockId(0); }),
            "layer \"head\" in block 0 after block 1");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[0].block = BlockId(1); }),
            "layer \"embed\" in block 1 after block -1");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.blocks.push_back("more"); }), "block 3 without a layer");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[0].parameters = {-1}; }),
            "layer \"embed\" with parameter bytes: -1");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[0].costs.clear(); }),
            "layer \"embed\" without costs");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[0].costs[0].micro_batch_size = 0; }),
            "layer \"embed\" at micro-batch size 0 after 0");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[0].costs[1].micro_batch_size = 1; }),
            "layer \"embed\" at micro-batch size 1 after 1");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.layers[0].costs[1].stash = {kLargestQuantity + 1}; }),
            "layer \"embed\" at micro-batch size 4 with stash bytes: 9007199254740993");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.edges[0].to = LayerId(3); }),
            "an edge from layer 0 to 3 with layer 3");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.edges[0].to = LayerId(0); }),
            "an edge from layer 0 to 0");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.edges[1] = p.edges[0]; }),
            "an edge from layer 0 to 1 again");
  EXPECT_EQ(refuse([](ModelProfile& p) { std::swap(p.edges[0], p.edges[1]); }),
            "an edge from layer 0 to 1 out of order");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.edges[0].tensor_bytes_per_sample.clear(); }),
            "an edge from layer 0 to 1 without a tensor");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.edges[0].tensor_bytes_per_sample[0] = {-1}; }),
            "an edge from layer 0 to 1 with a tensor of bytes: -1");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.tied[0].layers.pop_back(); }),
            "the tied parameter \"tokens\" in fewer than two layers");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.tied[0].layers[1] = LayerId(7); }),
            "the tied parameter \"tokens\" with layer 7");
  EXPECT_EQ(refuse([](ModelProfile& p) { std::swap(p.tied[0].layers[0], p.tied[0].layers[1]); }),
            "the tied parameter \"tokens\" with layers out of order");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.tied[0].bytes = {-1}; }),
            "the tied parameter \"tokens\" of bytes: -1");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.tied.push_back(p.tied[0]); }),
            "two tied parameters \"tokens\"");
  EXPECT_EQ(refuse([](ModelProfile& p) { p.input_bytes_per_sample = {-1}; }),
            "an input of bytes per sample: -1");
}

}  // namespace
}  // namespace frazil
