#include "planner/freezing/decorators.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace frazil {
namespace {

FreezeMask mask_of(const std::string& text) { return FreezeMask::parse(text, "", 0); }

// Lists every mask of `blocks` blocks whose last block trains.
std::vector<FreezeMask> list_masks(int blocks) {
  std::vector<FreezeMask> masks;
  for (int bits = 0; bits < 1 << (blocks - 1); ++bits) {
    FreezeMask mask = FreezeMask::all_active(blocks);
    for (int block = 0; block + 1 < blocks; ++block) {
      mask.set_active(BlockId{block}, (bits >> block & 1) == 0);
    }
    masks.push_back(mask);
  }
  return masks;
}

bool is_within(const FreezeMask& a, const FreezeMask& b) {  // frozen in a: frozen in b
  for (int block = 0; block < a.blocks(); ++block) {
    if (a.is_frozen(BlockId{block}) && b.is_active(BlockId{block})) return false;
  }
  return true;
}

TEST(PrefixProjection, GivesTheLongestFrozenPrefixInsideEveryMask) {
  for (const FreezeMask& mask : list_masks(9)) {
    FreezeMask longest = FreezeMask::all_active(9);
    for (std::int32_t last = 0; last < 8; ++last) {
      const FreezeMask prefix = FreezeMask::frozen_prefix(9, BlockId{last});
      if (is_within(prefix, mask)) longest = prefix;
    }
    ASSERT_EQ(project_prefix(mask), longest) << mask.text();
    ASSERT_EQ(project_prefix(longest), longest);
    const FreezeMask held = FreezeMask::all_active(9);
    ASSERT_EQ(rule(PrefixProjection{}, Wish{mask, held}).reason.empty(), mask == longest);
  }
  EXPECT_EQ(project_prefix(mask_of("1")).text(), "1");
}

TEST(Hysteresis, LetsEachBlockChangeWhenItHasBeenWantedLongEnough) {
  const Hysteresis hysteresis{{3}};
  HysteresisState state;
  FreezeMask held = mask_of("1111");
  const auto ask = [&](Step step, const char* wanted) {
    const FreezeMask mask = mask_of(wanted);
    held = rule(hysteresis, state, {mask, held, step}).mask;
    return held.text();
  };
  EXPECT_EQ(ask(10, "0111"), "1111");
  EXPECT_EQ(ask(11, "0011"), "1111");
  EXPECT_EQ(ask(12, "0111"), "1111") << "block 1 is not wanted any more";
  EXPECT_EQ(ask(13, "0011"), "0111");
  EXPECT_EQ(ask(14, "1011"), "0111") << "thaws wait too";
  EXPECT_EQ(ask(16, "1011"), "0011") << "block 1 has been wanted frozen since 13";
  EXPECT_EQ(ask(17, "1011"), "1011");
}

// A block follows its wish only where all wishes of the last N steps equal the newest.
TEST(Hysteresis, EqualsALookBackOverTheWholeHistory) {
  const unsigned seed = 77;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int changes = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const Step length = static_cast<Step>(random() % 6);
    HysteresisState state;
    std::vector<std::pair<Step, FreezeMask>> wishes;
    FreezeMask held = FreezeMask::all_active(4);
    Step step = 0;
    for (int i = 0; i < 60; ++i) {
      step += 1 + static_cast<Step>(random() % 2);
      FreezeMask wanted = wishes.empty() ? held : wishes.back().second;
      for (int block = 0; block < 3; ++block) {
        if (random() % 4 == 0) wanted.set_active(BlockId{block}, random() % 2 == 0);
      }
      wishes.emplace_back(step, wanted);
      FreezeMask expected = held;
      for (int block = 0; block < 3; ++block) {
        // The search goes back to the oldest of the wishes that equal the newest without a break.
        std::size_t oldest = wishes.size() - 1;
        while (oldest > 0 && wishes[oldest - 1].second.is_active(BlockId{block}) ==
                                 wanted.is_active(BlockId{block})) {
          --oldest;
        }
        if (step - wishes[oldest].first >= length) {
          expected.set_active(BlockId{block}, wanted.is_active(BlockId{block}));
        }
      }
      const FreezeMask next = rule(Hysteresis{{length}}, state, {wanted, held, step}).mask;
      ASSERT_EQ(next, expected) << "trial " << trial << ", step " << step;
      changes += next != held ? 1 : 0;
      held = next;
    }
  }
  EXPECT_GT(changes, 300);
}

TEST(MinimumInterval, HoldsAChangeBackUntilItsTime) {
  const MinimumInterval interval{{10}};
  const FreezeMask held = mask_of("0111");
  const FreezeMask wanted = mask_of("0011");
  EXPECT_EQ(rule(interval, 5, {wanted, held, 14}).mask, held);
  EXPECT_EQ(rule(interval, 5, {wanted, held, 14}).reason,
            "The mask changed at step 5, and 10 steps are to lie between two changes.");
  EXPECT_EQ(rule(interval, 5, {wanted, held, 15}).mask, wanted);
  EXPECT_EQ(rule(interval, std::nullopt, {wanted, held, 1}).mask, wanted);
  EXPECT_EQ(rule(interval, 5, {held, held, 6}).reason, "");
}

class Guarded {
 public:
  explicit Guarded(const ValidationGuard& guard) : guard_(guard) {}
  // Asks the guard after one evaluation, while "0011" is both held and wanted.
  std::string see(double value) {
    Validation validation{.step = ++step_, .loss = value, .accuracy = value};
    Ruling ruling = rule(guard_, state_, validation, Wish{frozen_, frozen_, step_});
    reason_ = ruling.reason;
    return ruling.mask.text();
  }
  std::string see_again() {
    return rule(guard_, state_, Validation{.step = step_}, Wish{frozen_, frozen_, step_})
        .mask.text();
  }
  const ValidationGuardState& state() const { return state_; }
  const std::string& reason() const { return reason_; }

 private:
  ValidationGuard guard_;
  ValidationGuardState state_;
  FreezeMask frozen_ = mask_of("0011");
  Step step_ = 0;
  std::string reason_;
};

TEST(ValidationGuard, ThawsAllWhenTheAccuracyFallsAndReleasesAfterSomeEvaluations) {
  Guarded guarded({.sigmas = 0, .tolerance = 0.01, .smoothing = 0.5, .hold_evaluations = 2});
  EXPECT_EQ(guarded.see(0.80), "0011");
  EXPECT_EQ(guarded.see(0.80), "0011");
  EXPECT_EQ(guarded.see(0.791), "0011") << "within the tolerance";
  EXPECT_EQ(guarded.see(0.70), "1111");
  EXPECT_EQ(guarded.reason(),
            "All blocks thaw: accuracy 0.7 is worse than 0.7955 before by more than 0.01.");
  EXPECT_EQ(guarded.see_again(), "1111") << "one evaluation is read once";
  EXPECT_EQ(guarded.see(0.80), "1111");
  EXPECT_EQ(guarded.see(0.80), "0011");
  EXPECT_EQ(guarded.state().thaws, 1);
}

TEST(ValidationGuard, WatchesTheLossFromTheOtherSide) {
  Guarded guarded({.metric = ValidationGuard::Metric::kLoss, .sigmas = 0, .tolerance = 0.1});
  EXPECT_EQ(guarded.see(1.0), "0011");
  EXPECT_EQ(guarded.see(0.2), "0011");
  EXPECT_EQ(guarded.see(1.0), "1111");
}

TEST(ValidationGuard, TakesARunThatHasDivergedForAFall) {
  for (const double diverged : {std::nan(""), std::numeric_limits<double>::infinity(), 1e200}) {
    Guarded guarded({.metric = ValidationGuard::Metric::kLoss});
    EXPECT_EQ(guarded.see(diverged), "1111");
    EXPECT_EQ(guarded.state().mean, std::nullopt);
  }
}

// Draws the accuracy of so many samples that are each answered rightly with this chance.
double draw_accuracy(double chance, int samples, std::mt19937& random) {
  std::binomial_distribution<int> right(samples, chance);
  return static_cast<double>(right(random)) / samples;
}

// Returns how many of 200 drawn runs thaw at an evaluation from `first` on, and expects that a
// learning run, which gets to 90 %, seldom thaws before.
int count_thaws(const std::function<double(int)>& chance, int first, int end) {
  const int samples = 200;
  const unsigned seed = 17;
  std::mt19937 random(seed);
  int early = 0;
  int thaws = 0;
  for (int run = 0; run < 200; ++run) {
    ValidationGuardState state;
    const FreezeMask frozen = mask_of("0011");
    for (int evaluation = 0; evaluation < end && state.thaws == 0; ++evaluation) {
      const Validation validation{.step = evaluation + 1,
                                  .accuracy = draw_accuracy(chance(evaluation), samples, random),
                                  .samples = samples};
      rule(ValidationGuard{}, state, validation, {frozen, frozen, evaluation + 1});
      if (state.thaws > 0) ++(evaluation < first ? early : thaws);
    }
  }
  EXPECT_LE(early, 4) << "seed " << seed;
  return thaws;
}

double learn(int evaluation) { return 0.9 - 0.6 * std::pow(0.5, evaluation); }

// As shipped, with the validation samples of a small run. A moving deviation counts the rise from
// 30 to 90 %, so that no fall from there would be seen.
TEST(ValidationGuard, SeesAFallThatFreezingPlantedAndKeepsStillWhileARunLearns) {
  EXPECT_LE(count_thaws(learn, 0, 30), 6) << "harmless";
  const auto falls = [](int evaluation) { return learn(evaluation) - (evaluation < 8 ? 0 : 0.2); };
  EXPECT_GE(count_thaws(falls, 8, 11), 190) << "a fifth of the answers goes wrong at once";
  const auto bleeds = [](int evaluation) {
    return learn(evaluation) - 0.03 * std::max(0, evaluation - 8);
  };
  EXPECT_GE(count_thaws(bleeds, 9, 25), 190) << "and little by little";
}

TEST(ValidationGuard, TakesTheStandardErrorOfADifferenceForNoise) {
  const FreezeMask frozen = mask_of("0011");
  const double n = 100;
  const double p = 91.0 / 102;
  for (const double k : {70.0, 75.0, 78.0, 80.0, 85.0}) {
    ValidationGuardState state;
    const auto see = [&](Step step, double accuracy) {
      const Validation validation{.step = step, .accuracy = accuracy, .samples = 100};
      return rule(ValidationGuard{.sigmas = 2, .tolerance = 0.01}, state, validation,
                  {frozen, frozen, step});
    };
    EXPECT_EQ(see(1, 0.9).mask, frozen);
    const double q = (k + 1) / 102;
    const bool thaws = 0.9 - k / n > 2 * std::sqrt((p * (1 - p) + q * (1 - q)) / n) + 0.01;
    EXPECT_EQ(see(2, k / n).mask == mask_of("1111"), thaws) << k;
  }
}

TEST(ValidationGuard, DoesNotBlameFreezingWhereNothingIsFrozen) {
  const FreezeMask active = mask_of("1111");
  ValidationGuardState state;
  const ValidationGuard guard{.sigmas = 0, .tolerance = 0};
  for (Step step = 1; step < 10; ++step) {
    const Validation falling{.step = step, .accuracy = 1.0 / static_cast<double>(step)};
    EXPECT_EQ(rule(guard, state, falling, {active, active, step}).reason, "");
  }
  EXPECT_EQ(state.thaws, 0);
}

// The guard is compared with a look back over all readings: blocks freeze only after a reading that
// is better than the weighted mean of those before by no more than the tolerance. A frozen block
// may thaw at any time.
TEST(ValidationGuard, ThatWaitsLetsNothingFreezeWhileTheMetricImproves) {
  const unsigned seed = 21;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const ValidationGuard guard{
      .sigmas = 1000, .tolerance = 0.02, .smoothing = 0.4, .hold_evaluations = 1, .waits = true};
  int waited = 0;
  int passed = 0;
  for (int trial = 0; trial < 30; ++trial) {
    ValidationGuardState state;
    std::optional<double> mean;
    bool improves = true;
    for (Step step = 1; step < 40; ++step) {
      std::optional<Validation> validation;
      if (random() % 2 == 0) {
        // The first reading is the lowest, so no later one is so much worse that blocks thaw.
        const double reading = mean ? 0.5 + 0.01 * static_cast<double>(random() % 10) : 0.5;
        validation = Validation{.step = step, .accuracy = reading};
        improves = !mean || reading - *mean > 0.02;
        mean = mean ? 0.6 * *mean + 0.4 * reading : reading;
      }
      const FreezeMask wanted = mask_of(random() % 2 == 0 ? "0011" : "1001");
      const FreezeMask held = mask_of(random() % 2 == 0 ? "0111" : "1101");
      const Ruling ruling = rule(guard, state, validation, {wanted, held, step});
      ASSERT_EQ(ruling.reason.empty(), ruling.mask == wanted);
      for (int block = 0; block < 4; ++block) {
        const BlockId id{block};
        const bool stays = improves && held.is_active(id);
        ASSERT_EQ(ruling.mask.is_active(id), wanted.is_active(id) || stays);
      }
      ++(improves ? waited : passed);
    }
  }
  EXPECT_GT(waited, 100);
  EXPECT_GT(passed, 100);
}

// The recursion of the moving mean and variance equals the weighted mean and variance of all
// readings: the first has weight (1 - s)^(n-1), the i-th of those after it s (1 - s)^(n-1-i).
TEST(ValidationGuard, KeepsTheWeightedMeanAndVarianceOfAllReadings) {
  const unsigned seed = 4;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const double s = 0.3;
  const FreezeMask active = mask_of("11");
  ValidationGuardState state;
  std::vector<double> readings;
  for (Step step = 1; step < 60; ++step) {
    readings.push_back(static_cast<double>(random() % 1000) / 1000);
    const Validation validation{.step = step, .accuracy = readings.back()};
    rule(ValidationGuard{.smoothing = s}, state, validation, {active, active, step});
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < readings.size(); ++i) {
      const double age = static_cast<double>(readings.size() - 1 - i);
      const double weight = (i == 0 ? 1 : s) * std::pow(1 - s, age);
      mean += weight * readings[i];
      square += weight * readings[i] * readings[i];
    }
    ASSERT_NEAR(*state.mean, mean, 1e-12);
    ASSERT_NEAR(state.variance, square - mean * mean, 1e-12);
  }
}

TEST(AmortisationGate, TakesASwitchOnWhereTheStepsToComeEarnItsCost) {
  const FreezeMask held = mask_of("0111");
  const FreezeMask wanted = mask_of("0011");
  const auto passes = [&](const AmortisationGate& gate, Duration saved, Duration cost, Step step) {
    const PredictTransition predict = [&](const FreezeMask& from, const FreezeMask& to, Step at) {
      EXPECT_EQ(from, held);
      EXPECT_EQ(to, wanted);
      EXPECT_EQ(at, step);
      return PredictedTransition{saved, cost};
    };
    return rule(gate, predict, 100, {wanted, held, step}).mask == wanted;
  };
  EXPECT_TRUE(passes({}, Duration{10}, Duration{1000}, 0));
  EXPECT_FALSE(passes({}, Duration{10}, Duration{1001}, 0));
  EXPECT_FALSE(passes({}, Duration{10}, Duration{1000}, 1)) << "99 steps are left";
  EXPECT_TRUE(passes({.margin_percent = 150}, Duration{15}, Duration{1000}, 0));
  EXPECT_FALSE(passes({.margin_percent = 150}, Duration{14}, Duration{1000}, 0));
  EXPECT_TRUE(passes({.within = Length{20}}, Duration{10}, Duration{200}, 50));
  EXPECT_FALSE(passes({.within = Length{20}}, Duration{10}, Duration{201}, 50));
  EXPECT_FALSE(passes({}, Duration{0}, Duration{0}, 0)) << "nothing is won";
  EXPECT_FALSE(passes({}, Duration{-5}, Duration{0}, 0));
  EXPECT_TRUE(passes({}, Duration{std::int64_t{1} << 62}, Duration{std::int64_t{1} << 62}, 0))
      << "products wider than 64 bits";
}

TEST(AmortisationGate, AsksNothingAboutAThaw) {
  const PredictTransition never = [](const FreezeMask&, const FreezeMask&,
                                     Step) -> PredictedTransition {
    throw std::runtime_error("asked");
  };
  for (const FreezeMask& held : list_masks(4)) {
    for (const FreezeMask& wanted : list_masks(4)) {
      const Wish wish{wanted, held, 1};
      const bool freezes_more = wanted != held && is_within(held, wanted);
      if (freezes_more) {
        EXPECT_THROW(rule(AmortisationGate{}, never, 10, wish), std::runtime_error);
      } else {
        EXPECT_EQ(rule(AmortisationGate{}, never, 10, wish).mask, wanted);
      }
    }
  }
}

}  // namespace
}  // namespace frazil
