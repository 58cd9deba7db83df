#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "exec/config/run_config.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Puts the members into a configuration.
RunConfig run_with(const std::string& members) {
  return parse_run_config(R"({"format": "frazil.run", "version": 1, )" + members + "}", "run.json");
}

FreezeConfig freeze_of(const std::string& json) { return run_with(R"("freeze": )" + json).freeze; }

TEST(FreezeConfig, OfAlphaAloneIsAPolicyInEpochsCountedFromOne) {
  const AlphaFreeze alpha{.alpha = 0.25, .start = 10, .interval = 2, .unit = PaceUnit::kEpochs};
  EXPECT_EQ(freeze_of(R"({"alpha": 0.25, "start_epoch": 11, "interval_epochs": 2})").policy,
            FreezePolicy(alpha));
  EXPECT_EQ(freeze_of(R"({"policy": {"kind": "alpha", "alpha": 0.25, "start_epoch": 11,
                                     "interval_epochs": 2}})")
                .policy,
            FreezePolicy(alpha));
  EXPECT_EQ(freeze_of(R"({"start_epoch": 11})"), FreezeConfig{});
  EXPECT_EQ(freeze_of("{}"), FreezeConfig{});
}

TEST(FreezeConfig, TakesAnyPolicyWithItsDecorators) {
  const FreezeConfig config = freeze_of(
      R"({"policy": {"kind": "random", "active_layers": 3},
          "decorators": {"minimum_interval": {"steps": 5}}})");
  EXPECT_EQ(std::get<RandomFreeze>(config.policy).active_layers, 3);
  EXPECT_EQ(config.decorators.minimum_interval->length, (Length{5, PaceUnit::kSteps}));
}

// The model has six transformer blocks, an embedding and a head.
TEST(FreezeConfig, IsThatOfTheModel) {
  EXPECT_EQ(std::get<StaticFreeze>(
                freeze_of(R"({"policy": {"kind": "static", "mask": "01111111"}})").policy)
                .mask->blocks(),
            8);
  EXPECT_THROW(freeze_of(R"({"policy": {"kind": "static", "mask": "0111"}})"), InputError);
  const std::string mlp = R"("model": {"kind": "mlp", "widths": [4, 4, 4]}, "freeze": )";
  EXPECT_NO_THROW(run_with(mlp + R"({"policy": {"kind": "static", "mask": "0111"}})"));
  EXPECT_THROW(run_with(mlp + R"({"policy": {"kind": "static", "mask": "01111"}})"), InputError);
  EXPECT_THROW(freeze_of(R"({"policy": {"kind": "random", "active_layers": 7}})"), InputError);
  EXPECT_THROW(freeze_of(R"({"policy": {"kind": "none", "alpha": 0.5}})"), InputError);
  EXPECT_THROW(freeze_of(R"({"alpha": 0.5, "policy": {"kind": "none"}})"), InputError);
  EXPECT_THROW(freeze_of(R"({"alpha": 0.5, "start_step": 3})"), InputError);
}

TEST(FreezeConfig, TakesUntrainableBlocksInBothForms) {
  EXPECT_FALSE(freeze_of("{}").freeze_untrainable);
  EXPECT_TRUE(freeze_of(R"({"freeze_untrainable": true})").freeze_untrainable);
  EXPECT_TRUE(freeze_of(R"({"alpha": 0.5, "freeze_untrainable": true})").freeze_untrainable);
  EXPECT_TRUE(
      freeze_of(R"({"policy": {"kind": "none"}, "freeze_untrainable": true})").freeze_untrainable);
}

}  // namespace
}  // namespace frazil
