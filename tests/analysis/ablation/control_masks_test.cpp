#include "analysis/ablation/control_masks.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "planner/transitions/cache_residency.h"
#include "tests/support/mask_of.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

using Masks = ArmFacts::Masks;

// Returns the mask of a control of a model whose last block is the head.
std::string control(const char* bits, Masks masks, std::uint64_t seed = 1) {
  const FreezeMask policy = mask_of(bits);
  return make_control_mask(policy, BlockId{policy.blocks() - 1}, masks, seed).text();
}

TEST(ControlMasks, FreezeFromTheTopAsManyBlocksAndNeverTheHead) {
  const auto reversed = [](const char* bits) { return control(bits, Masks::kReversed); };
  EXPECT_EQ(reversed("11111"), "11111");
  EXPECT_EQ(reversed("01111"), "11101");
  EXPECT_EQ(reversed("00011"), "10001") << "the embedding is the last to freeze";
  EXPECT_EQ(reversed("00001"), "00001");
  EXPECT_EQ(reversed("11001"), "11001") << "of an interior mask the number counts";
  EXPECT_EQ(reversed("1"), "1");
}

TEST(ControlMasks, NeverFreezeTheHeadWhereBlocksThatTrainNothingFollowIt) {
  const auto reversed = [](const char* bits) {
    return make_control_mask(mask_of(bits), BlockId{3}, Masks::kReversed, 1).text();
  };
  EXPECT_EQ(reversed("011111"), "110111");
  EXPECT_EQ(reversed("001111"), "100111");
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const FreezeMask drawn = make_control_mask(mask_of("001111"), BlockId{3}, Masks::kDrawn, seed);
    ASSERT_EQ(drawn.frozen_count(), 2);
    ASSERT_EQ(drawn.text().substr(3), "111") << "seed " << seed;
  }
}

TEST(ControlMasks, AreThePolicysOrFreezeNothing) {
  EXPECT_EQ(control("0101", Masks::kPolicy), "0101");
  EXPECT_EQ(control("0101", Masks::kNone), "1111");
}

TEST(ControlMasks, OfDifferentSeedsAreAllOrdersEquallyOften) {
  // Three blocks beside the head have six orders, which masks of one and of two blocks tell apart.
  std::map<std::string, int> orders;
  constexpr int kSeeds = 6000;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto drawn = [&](const char* bits) {
      return control(bits, Masks::kDrawn, static_cast<std::uint64_t>(seed));
    };
    ++orders[drawn("0111") + drawn("0011")];
  }
  EXPECT_EQ(orders.size(), 6U);
  // Each count is binomial around 1000 with a deviation of 29.
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, kSeeds / 6, 150) << order;
}

// A policy whose masks grow, thaw and have gaps.
std::vector<ForecastSegment> draw_policy(std::mt19937_64& random) {
  const int blocks = 2 + static_cast<int>(random() % 9);
  std::vector<ForecastSegment> policy;
  Step step = 0;
  for (std::size_t k = 0; k < 1 + random() % 8; ++k) {
    FreezeMask drawn = FreezeMask::all_active(blocks);
    for (int block = 0; block + 1 < blocks; ++block) {
      drawn.set_active(BlockId{block}, random() % 2 == 0);
    }
    const Step steps = 1 + static_cast<Step>(random() % 50);
    policy.push_back({step, steps, drawn});
    step += steps;
  }
  return policy;
}

// Returns the mask of each step.
std::vector<FreezeMask> list_steps(const std::vector<ForecastSegment>& segments) {
  std::vector<FreezeMask> masks;
  for (const ForecastSegment& segment : segments) {
    EXPECT_EQ(segment.step, static_cast<Step>(masks.size()));
    masks.insert(masks.end(), static_cast<std::size_t>(segment.steps), segment.mask);
  }
  return masks;
}

TEST(ControlMasks, FreezeAtEveryStepAsManyBlocksAsThePolicyWhateverItDoes) {
  for (int draw = 0; draw < draws(400); ++draw) {
    SCOPED_TRACE("seed " + std::to_string(draw));
    std::mt19937_64 random(static_cast<std::uint64_t>(draw));
    const auto policy = draw_policy(random);
    const std::vector<FreezeMask> wanted = list_steps(policy);
    for (const Masks masks : {Masks::kReversed, Masks::kDrawn}) {
      const auto segments =
          make_control_segments(policy, BlockId{policy[0].mask.blocks() - 1}, masks, 7);
      const std::vector<FreezeMask> made = list_steps(segments);
      ASSERT_EQ(made.size(), wanted.size());
      std::map<int, FreezeMask> by_count;
      for (std::size_t step = 0; step < made.size(); ++step) {
        const int frozen = wanted[step].frozen_count();
        ASSERT_EQ(made[step].frozen_count(), frozen);
        ASSERT_TRUE(made[step].is_active(BlockId{made[step].blocks() - 1}));
        const auto known = by_count.try_emplace(frozen, made[step]).first;
        ASSERT_EQ(known->second, made[step]) << "as many blocks are the same blocks";
      }
      for (auto more = by_count.begin(); more != by_count.end(); ++more) {
        for (auto fewer = by_count.begin(); fewer != more; ++fewer) {
          for (int block = 0; block < more->second.blocks(); ++block) {
            const bool both =
                fewer->second.is_active(BlockId{block}) || more->second.is_frozen(BlockId{block});
            ASSERT_TRUE(both) << "what is frozen stays so where more is";
          }
        }
      }
      for (std::size_t k = 1; k < segments.size(); ++k) {
        ASSERT_NE(segments[k].mask, segments[k - 1].mask);
      }
    }
  }
}

TEST(ControlMasks, OfATraceAreMaskEventsAtThePolicysSteps) {
  FreezeTrace trace;
  trace.blocks.assign(4, "block");
  trace.steps = 30;
  trace.events.push_back({0, MaskEvent{mask_of("1111")}});
  trace.events.push_back({5, CostEvent{5, 40, Duration{1}}});
  trace.events.push_back({10, MaskEvent{mask_of("0011"), "alpha", "half of the layers"}});
  const auto events = make_control_events(trace, BlockId{3}, Masks::kReversed, 1, "from-top");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].step, 10);
  EXPECT_EQ(std::get<MaskEvent>(events[1].what),
            (MaskEvent{mask_of("1001"), "from-top", "the policy froze 2 blocks"}));
  trace.events = events;
  EXPECT_EQ(parse_freeze_trace(to_jsonl(trace), "trace.jsonl").events, events);
  const std::vector<ForecastSegment> expected{{0, 10, mask_of("1111")}, {10, 20, mask_of("1001")}};
  EXPECT_EQ(find_segments(trace, "trace.jsonl"), expected);
}

// The forecast that lies beside the sources is the one of the run that it names.
TEST(ControlMasks, TheForecastOfTheDigitsIsThatOfItsPolicy) {
  const std::string file = std::string(FRAZIL_SOURCE_FOLDER) + "/traces/digits_freezing.jsonl";
  const FreezeTrace trace = read_freeze_trace(file);
  FreezeConfig config;
  config.policy =
      AlphaFreeze{.alpha = 1.0 / 3, .start = 10, .interval = 2, .unit = PaceUnit::kEpochs};
  const auto foreseen =
      foresee_masks(config, {.blocks = 8, .steps = trace.steps, .steps_per_epoch = 45});
  ASSERT_TRUE(foreseen.has_value());
  const std::vector<ForecastSegment> segments = find_segments(trace, file);
  std::vector<TracedMask> masks;
  for (const ForecastSegment& segment : segments) masks.push_back({segment.step, segment.mask});
  EXPECT_EQ(masks, *foreseen);
}

}  // namespace
}  // namespace frazil
