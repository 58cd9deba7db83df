#include "profiles/join_loss.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "profiles/error.h"
#include "tests/profiles/model_fixture.h"

namespace frazil {
namespace {

// Makes the chain embedding, block, loss, of which the loss has no parameters.
ModelProfile chain_with_loss() {
  ModelProfile profile = small_model();
  profile.tied.clear();
  profile.edges.erase(profile.edges.begin() + 1);
  profile.layers[1].costs = {make_cost(2, 10'000, 100)};
  profile.layers[2].parameters = {0};
  profile.layers[2].optimizer_state = {0};
  profile.layers[2].update = Duration{0};
  profile.layers[2].costs.front().backward_weight = Duration{0};
  profile.layers[2].costs.front().backward_weight_alone = Duration{0};
  return profile;
}

TEST(JoinLoss, AddsItsTimesAndActivationsToTheLayerBefore) {
  ModelProfile profile = chain_with_loss();
  join_loss(profile);
  EXPECT_NO_THROW(validate(profile, "model.json"));
  ASSERT_EQ(profile.layers.size(), 2U);
  EXPECT_EQ(profile.blocks.size(), 2U);
  EXPECT_EQ(profile.edges.size(), 1U);
  const Layer& last = profile.layers.back();
  EXPECT_EQ(last.name, "attention");
  EXPECT_TRUE(last.has_loss);
  EXPECT_EQ(last.parameters, Bytes{1'600});
  const CostSample& cost = last.costs.front();
  EXPECT_EQ(cost.forward, Duration{12'000});
  EXPECT_EQ(cost.forward_frozen, Duration{11'998});
  EXPECT_EQ(cost.backward_input, Duration{10'001 + 2'001});
  EXPECT_EQ(cost.backward_weight, Duration{10'002});
  EXPECT_EQ(cost.backward_weight_alone, Duration{10'003 + 2'001});
  EXPECT_EQ(cost.stash, Bytes{132});
  EXPECT_EQ(cost.stash_frozen, Bytes{66});
}

std::string refusal_after(const std::function<void(ModelProfile&)>& change) {
  ModelProfile profile = chain_with_loss();
  change(profile);
  const ModelProfile before = profile;
  try {
    join_loss(profile);
    return "taken";
  } catch (const InputError& error) {
    EXPECT_EQ(profile, before);
    EXPECT_EQ(error.found(), "--join-loss for \"" + profile.layers.back().name + "\"");
    return error.expected();
  }
}

TEST(JoinLoss, RefusesALastLayerThatIsMoreThanALoss) {
  EXPECT_EQ(refusal_after([](ModelProfile& profile) { profile.layers[2].parameters = {8}; }),
            "a last layer without parameters");
  EXPECT_EQ(refusal_after([](ModelProfile& profile) {
              profile.edges.push_back({LayerId(0), LayerId(2), EdgeKind::kDetached, {{8}}});
            }),
            "a last layer that reads the one before alone");
  EXPECT_EQ(refusal_after([](ModelProfile& profile) {
              profile.layers[2].costs.front().micro_batch_size = 8;
            }),
            "micro-batch sizes that are those of the layer before");
  EXPECT_EQ(refusal_after([](ModelProfile& profile) { profile.layers.resize(1); }),
            "a layer before the loss");
}

}  // namespace
}  // namespace frazil
