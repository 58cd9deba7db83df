// Tests how long features serve if the masks to come are known.

#include "planner/transitions/cache_residency.h"

#include <gtest/gtest.h>

#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

// The run has five blocks of a layer each and 10 epochs of 6 steps.
constexpr RunShape kRun{.blocks = 5, .steps = 60, .steps_per_epoch = 6, .seed = 1};

ModelProfile five_layers() {
  return make_chain(5, microseconds{100}, microseconds{100}, microseconds{100});
}

FreezeConfig alpha() {
  FreezeConfig config;
  config.policy = AlphaFreeze{.alpha = 0.5, .start = 2, .interval = 2, .unit = PaceUnit::kEpochs};
  return config;
}

TracedMask mask(Step step, const char* bits) { return {step, FreezeMask::parse(bits, "test", 0)}; }

TEST(CacheResidency, ForeseesTheMasksOfAScheduleAsTheRunWillDecideThem) {
  const auto masks = foresee_masks(alpha(), kRun);
  ASSERT_TRUE(masks.has_value());
  FreezeAuthority authority(alpha(), kRun);
  std::size_t next = 0;
  for (Step step = 0; step < kRun.steps; ++step) {
    const Decision decision = authority.decide({.step = step});
    if (!decision.changed) continue;
    ASSERT_LT(next, masks->size());
    EXPECT_EQ((*masks)[next++], (TracedMask{step, decision.mask}));
  }
  EXPECT_EQ(next, masks->size());
  EXPECT_GE(next, 3U);
}

TEST(CacheResidency, ForeseesNothingOfARuleThatReadsSignals) {
  FreezeConfig measured;
  measured.policy = PaperFreeze{};
  EXPECT_FALSE(foresee_masks(measured, kRun).has_value());
  FreezeConfig guarded = alpha();
  guarded.decorators.guard.emplace();
  EXPECT_FALSE(foresee_masks(guarded, kRun).has_value());
  EXPECT_EQ(count_resident_steps(std::nullopt, kRun, five_layers(), 12, 2), 48);
}

TEST(CacheResidency, EndsWithTheRunWithAThawOrAnEpochAfterTheNextDepth) {
  const std::vector<TracedMask> masks{mask(0, "11111"), mask(12, "00111"), mask(24, "00011"),
                                      mask(40, "00111"), mask(50, "11111")};
  EXPECT_EQ(count_resident_steps(masks, kRun, five_layers(), 12, 2), 12 + 6) << "deeper at 24";
  EXPECT_EQ(count_resident_steps(masks, kRun, five_layers(), 24, 3), 16) << "thaws at 40";
  EXPECT_EQ(count_resident_steps(masks, kRun, five_layers(), 40, 2), 10) << "thaws at 50";
  EXPECT_EQ(
      count_resident_steps({{mask(0, "11111"), mask(12, "00111")}}, kRun, five_layers(), 12, 2),
      48);
  EXPECT_EQ(
      count_resident_steps({{mask(0, "00111"), mask(58, "00011")}}, kRun, five_layers(), 12, 2), 48)
      << "never beyond the end";
  EXPECT_EQ(count_resident_steps({{mask(0, "00111"), mask(24, "00011"), mask(26, "11111")}}, kRun,
                                 five_layers(), 12, 2),
            14)
      << "thaws before the deeper ones are there";
}

}  // namespace
}  // namespace frazil
