// Compares policies that read the step alone with published code that is written down again here.

#include "planner/freezing/freeze_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/planner/freezing/freezing_cases.h"

namespace frazil {
namespace {

std::string mask_of(const FreezePolicy& policy, Step step, const RunShape& run) {
  return want_by_step(policy, step, run)->mask.text();
}

TEST(FreezeSchedule, AlphaInEpochsFollowsTheReleasedScheduleEpochByEpoch) {
  const FreezePolicy policy =
      in_steps(AlphaFreeze{.alpha = 1.0 / 3, .start = 1, .unit = PaceUnit::kEpochs}, 20);
  const std::vector<int> released{0, 4, 7, 9, 10, 11, 11, 12, 12, 12};
  const RunShape run{.blocks = 14, .steps = 200, .steps_per_epoch = 20};
  for (Step step = 0; step < 200; ++step) {
    const int layers = released[static_cast<std::size_t>(step / 20)];
    ASSERT_EQ(want_by_step(policy, step, run)->mask, freeze_layers(14, layers)) << step;
  }
}

TEST(FreezeSchedule, StaticMasksAreTheSameAtEveryStep) {
  for (const Step step : {Step{0}, Step{77}, Step{119}}) {
    EXPECT_EQ(mask_of(StaticFreeze{.frozen_layers = 2}, step, kSampleRun), "000111111");
    const FreezeMask mask = FreezeMask::parse("101101111", "", 0);
    EXPECT_EQ(mask_of(StaticFreeze{.mask = mask}, step, kSampleRun), "101101111");
  }
}

// Composer freezes int(freeze_level * (t - start) / (1 - start) * (layers without the last))
// layers, here computed in integers.
TEST(FreezeSchedule, LinearFreezesAsManyBlocksAsAnExactFloor) {
  for (int start = 0; start < 10; ++start) {
    for (int level = 1; level <= 10; ++level) {
      const LinearFreeze policy{.freeze_start = start / 10.0, .freeze_level = level / 10.0};
      for (int blocks = 1; blocks <= 30; ++blocks) {
        for (int epoch = 0; epoch <= 20; ++epoch) {
          const int over = 10 * epoch - 20 * start;  // (t - start) x 200
          const int exact = over <= 0 ? 0 : level * over * (blocks - 1) / (10 * 20 * (10 - start));
          ASSERT_EQ(linear_frozen_blocks(policy, epoch / 20.0, blocks), exact)
              << start << " " << level << " " << blocks << " " << epoch;
        }
      }
    }
  }
}

TEST(FreezeSchedule, LinearLooksAtTheBeginOfAnIntervalAndReachesItsLevelAtTheEnd) {
  const FreezePolicy policy =
      in_steps(LinearFreeze{.freeze_start = 0.5, .freeze_level = 1, .interval = 2}, 10);
  const RunShape run{.blocks = 9, .steps = 100, .steps_per_epoch = 10};
  EXPECT_EQ(mask_of(policy, 59, run), "111111111");
  EXPECT_EQ(mask_of(policy, 60, run), "011111111");  // 8 x 0.1 / 0.5 = 1.6
  EXPECT_EQ(mask_of(policy, 79, run), "011111111");
  EXPECT_EQ(mask_of(policy, 80, run), "000011111");  // 4.8
  EXPECT_EQ(mask_of(policy, 100, run), "000000001");
}

// The times t_i are computed by hand for 5 blocks and t0 = 0.8: the cubes of 0.8, 0.85, 0.9, 0.95
// and 1.
TEST(FreezeSchedule, FreezeOutEndsEachBlockAtItsPublishedTime) {
  const std::vector<double> cubes{0.512, 0.614125, 0.729, 0.857375, 1};
  const FreezeOut policy{.t0 = 0.8, .power = 3};
  for (std::int32_t block = 0; block < 5; ++block) {
    EXPECT_NEAR(freezeout_end(policy, BlockId{block}, 5), cubes[static_cast<std::size_t>(block)],
                1e-12);
  }
  const RunShape run{.blocks = 5, .steps = 1000};
  EXPECT_EQ(mask_of(policy, 512, run), "11111");
  EXPECT_EQ(mask_of(policy, 513, run), "01111");
  EXPECT_EQ(mask_of(policy, 614, run), "01111");
  EXPECT_EQ(mask_of(policy, 615, run), "00111");
  EXPECT_EQ(mask_of(policy, 730, run), "00011");
  EXPECT_EQ(mask_of(policy, 858, run), "00001");
  EXPECT_EQ(mask_of(policy, 1000, run), "00001");
}

TEST(FreezeSchedule, FreezeOutAnnealsEachRateToZeroAtItsEndAndScaledRatesCoverTheSameArea) {
  const FreezeOut scaled{.t0 = 0.5, .power = 2};
  const FreezeOut plain{.t0 = 0.5, .power = 2, .scaled = false};
  for (std::int32_t block = 0; block < 6; ++block) {
    const double end = freezeout_end(scaled, BlockId{block}, 6);
    EXPECT_NEAR(freezeout_rate(plain, BlockId{block}, 6, 0), 1, 1e-12);
    EXPECT_NEAR(freezeout_rate(plain, BlockId{block}, 6, end / 2), 0.5, 1e-12);
    EXPECT_NEAR(freezeout_rate(plain, BlockId{block}, 6, end), 0, 1e-12);
    EXPECT_EQ(freezeout_rate(plain, BlockId{block}, 6, std::nextafter(end, 2)), 0);
    double area = 0;
    for (int i = 0; i < 100000; ++i) {
      area += freezeout_rate(scaled, BlockId{block}, 6, (i + 0.5) / 100000) / 100000;
    }
    EXPECT_NEAR(area, 0.5, 1e-4) << "block " << block;
  }
}

TEST(FreezeSchedule, GradualUnfreezingThawsFromTheTopAGroupAnInterval) {
  const RunShape run{.blocks = 6, .steps = 100, .steps_per_epoch = 10};
  const FreezePolicy one = in_steps(GradualUnfreeze{}, 10);
  EXPECT_EQ(mask_of(one, 0, run), "000001");
  EXPECT_EQ(mask_of(one, 9, run), "000001");
  EXPECT_EQ(mask_of(one, 10, run), "000011");
  EXPECT_EQ(mask_of(one, 49, run), "011111");
  EXPECT_EQ(mask_of(one, 50, run), "111111");
  EXPECT_EQ(mask_of(one, 99, run), "111111");
  const FreezePolicy two = in_steps(GradualUnfreeze{.blocks_per_interval = 2, .start = 1}, 10);
  EXPECT_EQ(mask_of(two, 19, run), "000001");
  EXPECT_EQ(mask_of(two, 20, run), "000111");
  EXPECT_EQ(mask_of(two, 30, run), "011111");
  EXPECT_EQ(mask_of(two, 40, run), "111111");
}

// Block 5, the last loss of a distillation say, trains nothing: the masks of five blocks, and it
// stays active.
TEST(FreezeSchedule, BlocksAtTheEndInWhichNothingTrainsAreNotCountedAndStayActive) {
  const RunShape five{.blocks = 5, .steps = 1000, .steps_per_epoch = 10, .seed = 3};
  RunShape six = five;
  six.blocks = 6;
  six.untrained = 1;
  const std::vector<FreezePolicy> policies{
      FreezeOut{.t0 = 0.85, .power = 3}, in_steps(LinearFreeze{.freeze_start = 0.2}, 10),
      in_steps(GradualUnfreeze{}, 10),
      in_steps(AlphaFreeze{.alpha = 0.5, .start = 100, .interval = 100}, 10),
      RandomFreeze{.active_layers = 1, .interval = 50}};
  for (const FreezePolicy& policy : policies) {
    for (Step step = 0; step < 1000; step += 7) {
      ASSERT_EQ(mask_of(policy, step, six), mask_of(policy, step, five) + "1") << step;
    }
  }
  EXPECT_EQ(mask_of(policies[0], 999, six), "000011") << "the head trains to the end";
}

TEST(FreezeSchedule, RandomDrawsAsManyLayersEachEquallyOften) {
  const RandomFreeze policy{.active_layers = 2, .interval = 5};
  std::map<std::string, int> seen;
  constexpr int kDraws = 42'000;
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::string mask = mask_of(policy, 5 * draw, kSampleRun);
    ASSERT_EQ(mask, mask_of(policy, 5 * draw + 4, kSampleRun)) << "one draw an interval";
    ASSERT_EQ(mask.front(), '1');
    ASSERT_EQ(mask.back(), '1');
    ASSERT_EQ(std::count(mask.begin(), mask.end(), '1'), 4);
    ++seen[mask];
  }
  ASSERT_EQ(seen.size(), 21U) << "pairs of 7 layers";
  // The statistic has 20 degrees of freedom, so it exceeds 45.3 with a probability of 0.001.
  double chi_squared = 0;
  for (const auto& [mask, count] : seen) {
    const double expected = kDraws / 21.0;
    chi_squared += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_squared, 45.3);
}

TEST(FreezeSchedule, RandomIsKeyedByTheSeedAndMayFreezeTheEmbedding) {
  const RandomFreeze policy{.active_layers = 3, .embedding_active = false};
  RunShape other = kSampleRun;
  other.seed = 8;
  int differ = 0;
  for (Step step = 0; step < 100; ++step) {
    ASSERT_EQ(mask_of(policy, step, kSampleRun), mask_of(policy, step, kSampleRun));
    ASSERT_EQ(mask_of(policy, step, kSampleRun).front(), '0');
    differ += mask_of(policy, step, kSampleRun) != mask_of(policy, step, other) ? 1 : 0;
  }
  EXPECT_GT(differ, 80) << "of 35 masks two agree by chance";
}

TEST(FreezeSchedule, ATraceIsReplayedMaskByMaskAndRescaledByProgress) {
  const auto mask = [](const char* text) { return FreezeMask::parse(text, "", 0); };
  TraceFreeze policy{.steps = 100,
                     .masks = {{10, mask("01111")}, {50, mask("00111")}, {90, mask("10111")}}};
  RunShape run{.blocks = 5, .steps = 100};
  EXPECT_EQ(mask_of(policy, 9, run), "11111");
  EXPECT_EQ(mask_of(policy, 10, run), "01111");
  EXPECT_EQ(mask_of(policy, 49, run), "01111");
  EXPECT_EQ(mask_of(policy, 50, run), "00111");
  EXPECT_EQ(mask_of(policy, 99, run), "10111");
  run.steps = 250;
  EXPECT_EQ(mask_of(policy, 99, run), "10111");
  policy.rescale = true;
  EXPECT_EQ(mask_of(policy, 24, run), "11111");
  EXPECT_EQ(mask_of(policy, 25, run), "01111");
  EXPECT_EQ(mask_of(policy, 124, run), "01111");
  EXPECT_EQ(mask_of(policy, 125, run), "00111");
  EXPECT_EQ(mask_of(policy, 225, run), "10111");
}

TEST(FreezeSchedule, NoPolicyFreezesTheHeadOrTripsOverASmallModel) {
  for (int blocks = 1; blocks <= 4; ++blocks) {
    RunShape run = kSampleRun;
    run.blocks = blocks;
    for (const FreezePolicy& policy :
         {FreezePolicy(NoFreeze{}), FreezePolicy(StaticFreeze{}),
          FreezePolicy(AlphaFreeze{.alpha = 0.9}),
          FreezePolicy(LinearFreeze{.freeze_start = 0, .unit = PaceUnit::kSteps}),
          FreezePolicy(FreezeOut{.t0 = 0}), FreezePolicy(GradualUnfreeze{.unit = PaceUnit::kSteps}),
          FreezePolicy(RandomFreeze{.active_layers = 0, .embedding_active = false})}) {
      for (const Step step : {Step{0}, Step{3}, Step{120}}) {
        const std::string mask = mask_of(policy, step, run);
        EXPECT_EQ(static_cast<int>(mask.size()), blocks);
        EXPECT_EQ(mask.back(), '1') << name_of(policy);
      }
    }
  }
}

}  // namespace
}  // namespace frazil
