// Compares policies that read signals with published sequences, with cases by hand and, on random
// signals, with the formulas written down again.

#include "planner/freezing/measured_freeze.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/planner/freezing/freezing_cases.h"

namespace frazil {
namespace {

// Asks a policy step by step and holds the mask that it wants; at first every block is active.
class Asked {
 public:
  Asked(FreezePolicy policy, const RunShape& run)
      : policy_(std::move(policy)), run_(run), state_(initial_state(policy_)) {}

  std::string ask(const FreezeSignals& signals) {
    Judged judged = want(policy_, state_, signals, held_, run_);
    state_ = std::move(judged.state);
    held_ = std::move(judged.wanted.mask);
    reason_ = std::move(judged.wanted.reason);
    return held_.text();
  }
  int ask_layers(const FreezeSignals& signals) {
    ask(signals);
    return std::max(held_.frozen_count() - 1, 0);
  }
  const std::string& reason() const { return reason_; }
  const PolicyState& state() const { return state_; }

 private:
  FreezePolicy policy_;
  RunShape run_;
  PolicyState state_;
  FreezeMask held_ = FreezeMask::all_active(run_.blocks);
  std::string reason_;
};

// If the last layer has the smallest norm, the bound alone decides, as in the published table.
TEST(PaperFreeze, WithItsBoundActiveFollowsThePublishedTable) {
  const std::vector<std::pair<double, std::vector<int>>> of_12{
      {1.0 / 5, {0, 3, 5, 6, 8, 9, 9, 10, 10, 11}},
      {1.0 / 4, {0, 3, 6, 7, 9, 10, 10, 11, 11, 12}},
      {1.0 / 3, {0, 4, 7, 9, 10, 11, 11, 12, 12, 12}},
      {2.0 / 5, {0, 5, 8, 10, 11, 12, 12, 12, 12, 12}},
      {1.0 / 2, {0, 6, 9, 11, 12, 12, 12, 12, 12, 12}},
      {0.07, {0, 1, 2, 3, 4, 4, 5, 5, 6, 6}}};
  std::vector<double> norms(14, 1.0);
  norms[12] = 0.1;
  for (const auto& [alpha, layers] : of_12) {
    Asked asked(PaperFreeze{.alpha = alpha, .interval = 10}, {.blocks = 14, .steps = 100});
    for (Step step = 0; step < 100; ++step) {
      const auto interval = static_cast<std::size_t>(step / 10);
      ASSERT_EQ(asked.ask_layers({.step = step, .gradient_norms = norms}), layers[interval])
          << "alpha " << alpha << ", step " << step;
    }
  }
}

TEST(PaperFreeze, StopsAtTheBlockWithTheSmallestGradientWhereTheBoundAllowsMore) {
  Asked asked(PaperFreeze{.alpha = 0.5}, {.blocks = 10, .steps = 100});
  //                                  e    1    2    3    4    5    6    7    8    head
  const std::vector<double> second{4.0, 3.0, 0.2, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 0.1};
  EXPECT_EQ(asked.ask({.step = 0, .gradient_norms = second}), "1111111111") << "nothing has run";
  EXPECT_EQ(asked.ask({.step = 1, .gradient_norms = second}), "0001111111") << "bound 4, argmin 2";
  EXPECT_EQ(asked.reason(),
            "2 of 8 layers are frozen: the bound is 4.000, the smallest gradient norm that of "
            "block 2.");
  // The smaller numbers of frozen blocks are no gradients; the bound is 2 + 0.5 x 6 = 5, the argmin
  // 7.
  const std::vector<double> seventh{0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 3.0, 0.3, 3.0, 0.1};
  EXPECT_EQ(asked.ask({.step = 2, .gradient_norms = seventh}), "0000001111");
  EXPECT_EQ(std::get<PaperState>(asked.state()).reached, 5);
  // The bound is 6.5, the argmin 6.
  const std::vector<double> sixth{0, 0, 0, 0, 0, 0, 0.3, 3.0, 3.0, 0.1};
  EXPECT_EQ(asked.ask({.step = 3, .gradient_norms = sixth}), "0000000111");
}

TEST(PaperFreeze, KeepsAllActiveWhileTheEmbeddingHasTheSmallestGradient) {
  Asked asked(PaperFreeze{.alpha = 0.5}, {.blocks = 5, .steps = 100});
  EXPECT_EQ(asked.ask({.step = 1, .gradient_norms = {0.1, 1, 1, 1, 1}}), "11111");
  EXPECT_EQ(asked.ask({.step = 2, .gradient_norms = {1, 0.1, 1, 1, 1}}), "00111");
}

TEST(PaperFreeze, EqualsTheEquationOnRandomNorms) {
  const unsigned seed = 2021;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int by_bound = 0;
  int by_norm = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int layers = 1 + static_cast<int>(random() % 24);
    const double alpha = 0.05 + 0.9 * draw_share(random);
    Asked asked(PaperFreeze{.alpha = alpha}, {.blocks = layers + 2, .steps = 100});
    long double reached = 0;
    int frozen = 0;
    for (Step step = 1; step < 25; ++step) {
      FreezeSignals signals{.step = step};
      for (int block = 0; block < layers + 2; ++block) {
        signals.gradient_norms.push_back(draw_share(random) / (1 + block));
      }
      const long double bound = reached + static_cast<long double>(alpha) * (layers - reached);
      int smallest = -1;
      for (int block = layers; block >= (frozen == 0 ? 0 : frozen + 1); --block) {
        const auto norm = [&](int b) {
          return signals.gradient_norms[static_cast<std::size_t>(b)];
        };
        if (smallest < 0 || norm(block) <= norm(smallest)) smallest = block;
      }
      const int before = frozen;
      if (smallest >= 0) {
        ++(bound <= smallest ? by_bound : by_norm);
        reached = std::min<long double>(bound, smallest);
        frozen = static_cast<int>(std::ceil(static_cast<double>(reached) - 1e-9));
      }
      ASSERT_EQ(asked.ask_layers(signals), frozen) << "trial " << trial << ", step " << step;
      ASSERT_GE(frozen, before);
      ASSERT_LE(frozen, alpha_frozen_layers(layers, alpha, static_cast<int>(step)));
    }
  }
  EXPECT_GT(by_bound, 100);
  EXPECT_GT(by_norm, 100);
}

TEST(AutoFreeze, TakesPercentilesBetweenRanks) {
  EXPECT_DOUBLE_EQ(percentile_of({4, 1, 3, 2}, 50), 2.5);
  EXPECT_DOUBLE_EQ(percentile_of({4, 1, 3, 2}, 25), 1.75);
  EXPECT_DOUBLE_EQ(percentile_of({4, 1, 3, 2}, 40), 2.2);
  EXPECT_DOUBLE_EQ(percentile_of({4, 1, 3, 2}, 100), 4);
  EXPECT_DOUBLE_EQ(percentile_of({7}, 50), 7);
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(percentile_of({1, infinite, infinite}, 75), infinite);
  EXPECT_EQ(percentile_of({1, 2, infinite}, 50), 2);
  EXPECT_THROW(percentile_of({}, 50), std::logic_error);
}

TEST(AutoFreeze, FreezesTheLayersBelowTheFirstAtTheMedianAndNotThatOne) {
  Asked asked(AutoFreeze{.interval = 2}, {.blocks = 6, .steps = 100});
  EXPECT_EQ(asked.ask({.step = 1}), "111111") << "not due, so not read";
  EXPECT_EQ(asked.ask({.step = 2, .interval_gradients = {10, 10, 10, 10, 10, 10}}), "111111");
  // The changes are 0.05, 0.1, 0.5 and 0.8, so the median is 0.3 and layer 3 is the first to reach
  // it.
  EXPECT_EQ(asked.ask({.step = 4, .interval_gradients = {0, 9.5, 11, 5, 2, 0}}), "000111");
  EXPECT_EQ(asked.reason(),
            "2 of 4 layers are frozen: the gradient of block 3 is the first to change by 0.3 or "
            "more.");
  // The remaining changes are 0.2 and 0.1, so layer 3 changes by more than the median.
  EXPECT_EQ(asked.ask({.step = 6, .interval_gradients = {0, 0, 0, 4, 1.8, 0}}), "000111");
  // The changes are 0.01 and 1, so layer 3 freezes; then layer 4 alone is its own median for ever.
  EXPECT_EQ(asked.ask({.step = 8, .interval_gradients = {0, 0, 0, 3.96, 3.6, 0}}), "000011");
  EXPECT_EQ(asked.ask({.step = 10, .interval_gradients = {0, 0, 0, 0, 3.6, 0}}), "000011");
}

TEST(AutoFreeze, AChangeFromNothingIsInfiniteAndNoChangeIsNone) {
  EXPECT_EQ(gradient_change(0, 0), 0);
  EXPECT_EQ(gradient_change(0, 1), std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(gradient_change(4, 3), 0.25);
  EXPECT_DOUBLE_EQ(gradient_change(4, 7), 0.75);
}

TEST(AutoFreeze, EqualsItsDefinitionOnRandomGradients) {
  const unsigned seed = 2102;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int grew = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int layers = 1 + static_cast<int>(random() % 16);
    Asked asked(AutoFreeze{}, {.blocks = layers + 2, .steps = 100});
    std::vector<double> before;
    int frozen = 0;
    for (Step step = 1; step < 20; ++step) {
      std::vector<double> now;
      for (int block = 0; block < layers + 2; ++block) now.push_back(0.1 + draw_share(random));
      if (!before.empty() && frozen < layers) {
        // A layer reaches the median if at least half of the active layers change no more than it
        // does: of an even number the median is the mean of the middle two, so it lies between
        // them.
        const auto change = [&](int block) {
          const auto b = static_cast<std::size_t>(block);
          return std::abs(before[b] - now[b]) / before[b];
        };
        int first = frozen + 1;
        const auto is_at_median = [&](int block) {
          int less = 0;
          for (int other = frozen + 1; other <= layers; ++other)
            less += change(other) < change(block);
          return 2 * less >= layers - frozen - (layers - frozen) % 2;
        };
        while (!is_at_median(first)) ++first;
        grew += first - 1 > frozen ? 1 : 0;
        frozen = first - 1;
      }
      ASSERT_EQ(asked.ask_layers({.step = step, .interval_gradients = now}), frozen)
          << "trial " << trial << ", step " << step;
      before = now;
    }
  }
  EXPECT_GT(grew, 100);
}

FreezeSignals plasticities(Step step, std::vector<double> values,
                           std::optional<double> rate = std::nullopt) {
  FreezeSignals signals{.step = step};
  signals.plasticity = std::move(values);
  signals.learning_rate = rate;
  return signals;
}

TEST(PlasticityFreeze, FreezesFromTheFrontWhatHasBecomeCalmForLongEnough) {
  Asked asked(PlasticityFreeze{.tolerance = 0.1, .patience = 2}, {.blocks = 6, .steps = 100});
  EXPECT_EQ(asked.ask(plasticities(1, {1, 1.0, 1, 1, 1, 1})), "111111");
  EXPECT_EQ(asked.ask(plasticities(2, {1, .05, .05, 1, .05, 1})), "111111") << "once is not enough";
  EXPECT_EQ(asked.ask(plasticities(3, {1, .20, .05, 1, .05, 1})), "111111")
      << "the front has moved again: those behind it wait";
  EXPECT_EQ(asked.ask(plasticities(4, {1, .10, .05, 1, .05, 1})), "111111");
  EXPECT_EQ(asked.ask(plasticities(5, {1, .10, .05, 1, .05, 1})), "000111");
  EXPECT_EQ(asked.reason(),
            "2 of 4 layers are frozen: the plasticity of the next is 1, its largest was 1.");
  EXPECT_EQ(asked.ask(plasticities(6, {1, 9, 9, .01, .05, 1})), "000111") << "frozen: not read";
  EXPECT_EQ(asked.ask(plasticities(7, {1, 9, 9, .01, .05, 1})), "000001");
}

TEST(PlasticityFreeze, SmoothsWithTheWeightOfTheNewest) {
  Asked asked(PlasticityFreeze{.tolerance = 0.3, .smoothing = 0.5}, {.blocks = 3, .steps = 100});
  EXPECT_EQ(asked.ask(plasticities(1, {0, 8, 0})), "111");
  EXPECT_EQ(asked.ask(plasticities(2, {0, 0, 0})), "111") << "4, above 2.4";
  EXPECT_EQ(asked.ask(plasticities(3, {0, 0.8, 0})), "001") << "2.4";
}

TEST(PlasticityFreeze, PerRateDoesNotTakeASmallStepForCalm) {
  const RunShape run{.blocks = 3, .steps = 100};
  Asked plain(PlasticityFreeze{}, run);
  Asked per_rate(PlasticityFreeze{.per_rate = true}, run);
  for (Step step = 1; step < 20; ++step) {
    const double rate = std::pow(0.8, static_cast<double>(step));
    plain.ask(plasticities(step, {1, rate * rate, 1}, rate));
    ASSERT_EQ(per_rate.ask(plasticities(step, {1, rate * rate, 1}, rate)), "111") << step;
  }
  EXPECT_EQ(plain.ask(plasticities(20, {1, 1, 1}, 0.01)), "001");
}

TEST(PlasticityFreeze, ThawsWhenTheRateHasFallenAndFreezesAgain) {
  Asked asked(PlasticityFreeze{.thaw_at_rate = 0.1}, {.blocks = 4, .steps = 100});
  EXPECT_EQ(asked.ask(plasticities(1, {1, 1, 1, 1}, 1.0)), "1111");
  EXPECT_EQ(asked.ask(plasticities(2, {1, .01, 1, 1}, 1.0)), "0011");
  EXPECT_EQ(asked.ask(plasticities(3, {1, 0, 1, 1}, 0.2)), "0011");
  EXPECT_EQ(asked.ask(plasticities(4, {1, 0, 1, 1}, 0.1)), "1111");
  EXPECT_EQ(asked.reason(), "All layers thaw: the learning rate has fallen from 1 to 0.1.");
  EXPECT_EQ(asked.ask(plasticities(5, {1, .01, .01, 1}, 0.1)), "0001");
  EXPECT_EQ(asked.ask({.step = 6, .learning_rate = 0.01}), "1111")
      << "all frozen: there is nothing to measure, and still the rate is heard";
}

TEST(MeasuredFreeze, LeavesAllAsItIsUntilItsSignalsCanBeRead) {
  const RunShape run{.blocks = 5, .steps = 100};
  const std::vector<double> good{1, 1, 1, 0.1, 1};
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0, 1e200}) {
    Asked asked(PaperFreeze{.alpha = 0.5, .interval = 10}, run);
    std::vector<double> values = good;
    values[2] = bad;
    EXPECT_EQ(asked.ask({.step = 10}), "11111") << "missing";
    EXPECT_EQ(asked.reason(),
              "0 of 3 layers stay frozen: a signal is missing, negative or not finite.");
    EXPECT_EQ(asked.ask({.step = 11, .gradient_norms = values}), "11111");
    EXPECT_EQ(asked.ask({.step = 12, .gradient_norms = good}), "00011") << "bound 1.5";
    EXPECT_EQ(asked.ask({.step = 19, .gradient_norms = good}), "00011");
    EXPECT_EQ(asked.reason(), "2 of 3 layers stay frozen: the next decision is due at step 20.");
    EXPECT_EQ(asked.ask({.step = 20, .gradient_norms = values}), "00001") << "block 2 is frozen";
    EXPECT_THROW(Asked(PaperFreeze{}, run).ask({.step = 1, .gradient_norms = {1, 2}}),
                 std::logic_error);
  }
}

// Five blocks that train, with and without a sixth in which nothing does.
TEST(MeasuredFreeze, DoesNotCountABlockAtTheEndInWhichNothingTrains) {
  const unsigned seed = 31;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const RunShape five{.blocks = 5, .steps = 100};
  const RunShape six{.blocks = 6, .untrained = 1, .steps = 100};
  const std::vector<FreezePolicy> policies{PaperFreeze{.alpha = 0.4, .interval = 5},
                                           AutoFreeze{.percentile = 60, .interval = 5},
                                           PlasticityFreeze{.tolerance = 0.5, .interval = 5}};
  for (const FreezePolicy& policy : policies) {
    Asked without(policy, five);
    Asked with(policy, six);
    std::string mask;
    for (Step step = 1; step < 100; ++step) {
      const FreezeSignals all = draw_signals(random, step, six);
      FreezeSignals fewer = all;
      for (auto* const values :
           {&fewer.gradient_norms, &fewer.interval_gradients, &fewer.plasticity}) {
        values->resize(5);
      }
      mask = with.ask(all);
      ASSERT_EQ(mask, without.ask(fewer) + "1") << name_of(policy) << " at " << step;
      ASSERT_EQ(with.reason(), without.reason());
    }
    EXPECT_EQ(mask.substr(4), "11") << name_of(policy);
    EXPECT_EQ(mask.front(), '0') << name_of(policy) << " has frozen something";
  }
}

TEST(MeasuredFreeze, KnowsItsOwnStates) {
  for (const FreezePolicy& policy : sample_policies()) {
    EXPECT_TRUE(is_state_of(policy, initial_state(policy), kSampleBlocks)) << name_of(policy);
  }
  EXPECT_FALSE(is_state_of(NoFreeze{}, PaperState{}, 5));
  EXPECT_FALSE(is_state_of(AutoFreeze{}, PaperState{}, 5));
  EXPECT_FALSE(is_state_of(PaperFreeze{}, PaperState{.reached = 3.5}, 5));
  EXPECT_FALSE(is_state_of(AutoFreeze{}, AutoFreezeState{.previous = {1}}, 5));
  EXPECT_FALSE(is_state_of(PlasticityFreeze{}, PlasticityState{.frozen = 4}, 5));
}

}  // namespace
}  // namespace frazil
