#include "analysis/guard/movements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "profiles/error.h"

namespace frazil {
namespace {

using enum GuardedKind;

constexpr int kBlocks = 40;
constexpr int kLayers = 6;

// A machine whose blocks scatter normally; factors slow its parts. Equal seeds draw alike.
class Machine {
 public:
  explicit Machine(double noise) : noise_(noise), layers_(kLayers, 1.0) {}

  Machine& slow_host(double factor) {
    host_ = factor;
    return *this;
  }
  Machine& slow_layer(std::size_t layer, double factor) {
    layers_[layer] = factor;
    return *this;
  }
  Machine& slow_link(double factor) {
    link_ = factor;
    return *this;
  }
  // Time of a step that is in no layer.
  Machine& slow_rest(double factor) {
    rest_ = factor;
    return *this;
  }

  std::vector<GuardedValue> measure(unsigned seed, int blocks = kBlocks) const {
    std::mt19937 draws(seed);
    std::normal_distribution<double> scatter(0, noise_);
    std::vector<GuardedSeries> series{{kStep, "step", {}}, {kPrediction, "step / predicted", {}}};
    for (int l = 0; l < kLayers; ++l) series.push_back({kLayer, "layer" + std::to_string(l), {}});
    series.push_back({kLink, "latency", {}});
    for (int block = 0; block < blocks; ++block) {
      double sum = 0;
      for (std::size_t l = 0; l < kLayers; ++l) {
        const double time =
            (1e6 + 3e5 * static_cast<double>(l)) * host_ * layers_[l] * (1 + scatter(draws));
        series[2 + l].values.push_back(time);
        sum += time;
      }
      const double step = (sum + 1e6 * host_ * rest_) * (1 + scatter(draws));
      series[0].values.push_back(step);
      series[1].values.push_back(step / (sum + 1e6 * host_));
      series.back().values.push_back(5e4 * host_ * link_ * (1 + scatter(draws)));
    }
    return sum_up(series);
  }

 private:
  double noise_;
  double host_ = 1;
  double link_ = 1;
  double rest_ = 1;
  std::vector<double> layers_;
};

// What two blocks of another day say, with seeds of their own, beside a good day.
GuardConclusion guard(const Machine& good, const Machine& today, unsigned seed) {
  const std::vector<GuardedValue> baseline = good.measure(seed);
  const std::vector<Movement> first = find_movements(baseline, today.measure(seed + 1));
  return conclude_guard(first, {find_movements(baseline, today.measure(seed + 2))}, Guarded::kPlan);
}

std::vector<std::string> names_of(const std::vector<Movement>& movements) {
  std::vector<std::string> names;
  for (const Movement& movement : movements) names.push_back(movement.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(GuardMovements, AnEqualDayPassesUnderAnyNoise) {
  for (const double noise : {0.001, 0.01, 0.03, 0.05}) {
    for (unsigned seed = 0; seed < 100; ++seed) {
      const GuardConclusion conclusion = guard(Machine(noise), Machine(noise), 1000 * seed);
      EXPECT_EQ(conclusion.verdict, Verdict::kPass) << "noise " << noise << " seed " << seed;
    }
  }
}

TEST(GuardMovements, AMachineThatCannotTellNeverPasses) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Machine today(0.3);
    today.slow_host(1.2);
    EXPECT_EQ(guard(Machine(0.3), today, 1000 * seed).verdict, Verdict::kInconclusive);
    EXPECT_NE(guard(Machine(0.1), Machine(0.1), 1000 * seed).verdict, Verdict::kFail);
  }
}

TEST(GuardMovements, ASlowLayerIsNamedAlone) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    for (const std::size_t layer : {0U, 3U, 5U}) {
      Machine today(0.01);
      const GuardConclusion conclusion = guard(Machine(0.01), today.slow_layer(layer, 1.1), seed);
      EXPECT_EQ(conclusion.verdict, Verdict::kFail) << "seed " << seed;
      EXPECT_EQ(names_of(conclusion.alarms), Names{"layer" + std::to_string(layer)})
          << "seed " << seed;
    }
  }
}

TEST(GuardMovements, WhatSlowsAllLayersAlikeIsTheHost) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Machine today(0.01);
    const GuardConclusion conclusion = guard(Machine(0.01), today.slow_host(1.08), seed);
    EXPECT_EQ(conclusion.verdict, Verdict::kFail) << "seed " << seed;
    EXPECT_EQ(names_of(conclusion.alarms), Names{"host"}) << "seed " << seed;
  }
}

TEST(GuardMovements, ASlowLinkIsNamedAloneThoughTheHostIsSlowToo) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Machine today(0.01);
    today.slow_link(1.5);
    EXPECT_EQ(names_of(guard(Machine(0.01), today, seed).alarms), Names{"latency"});
    today.slow_host(1.2);
    EXPECT_EQ(names_of(guard(Machine(0.01), today, seed).alarms), (Names{"host", "latency"}));
  }
}

TEST(GuardMovements, AStepThatIsSlowBesideItsLayersIsToldWithoutThem) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Machine today(0.005);
    EXPECT_EQ(names_of(guard(Machine(0.005), today.slow_rest(2), seed).alarms),
              Names{"step / predicted"});
  }
}

TEST(GuardMovements, NothingWithinThreePercentOrTwiceTheNoiseIsAnAlarm) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Machine little(0.002);
    EXPECT_EQ(guard(Machine(0.002), little.slow_layer(2, 1.025), seed).verdict, Verdict::kPass);
    Machine noisy(0.06);
    EXPECT_EQ(guard(Machine(0.06), noisy.slow_layer(2, 1.05), seed).verdict, Verdict::kPass);
  }
  const auto day = [](double median, double noise) {
    return std::vector<GuardedValue>{{kStep, "step", median, noise, kBlocks}};
  };
  EXPECT_DOUBLE_EQ(find_movements(day(1e6, 0.01), day(1e6, 0.014)).front().bar, 0.03);
  EXPECT_DOUBLE_EQ(find_movements(day(1e6, 0.01), day(1e6, 0.04)).front().bar, 0.08);
  EXPECT_DOUBLE_EQ(find_movements(day(1e6, 0.05), day(1e6, 0.04)).front().bar, 0.1);
  EXPECT_EQ(find_movements(day(1e6, 0), day(1.0299e6, 0)).front().moved, Direction::kNone);
  EXPECT_EQ(find_movements(day(1e6, 0), day(1.0301e6, 0)).front().moved, Direction::kSlower);
  EXPECT_EQ(find_movements(day(1e6, 0), day(1e6 / 1.0301, 0)).front().moved, Direction::kFaster);
}

TEST(GuardMovements, WhatTheSecondBlockDoesNotShowIsNoAlarm) {
  const std::vector<GuardedValue> good = Machine(0.01).measure(1);
  Machine bad(0.01);
  const std::vector<Movement> slow = find_movements(good, bad.slow_layer(4, 1.3).measure(2));
  const std::vector<Movement> usual = find_movements(good, Machine(0.01).measure(3));
  ASSERT_TRUE(needs_confirmation(slow));
  ASSERT_FALSE(needs_confirmation(usual));
  const GuardConclusion passed = conclude_guard(slow, {usual}, Guarded::kPlan);
  EXPECT_EQ(passed.verdict, Verdict::kPass);
  ASSERT_EQ(passed.unconfirmed.size(), 2U);
  EXPECT_EQ(passed.unconfirmed[0].movement.name, "step");
  EXPECT_EQ(passed.unconfirmed[1].movement.name, "layer4");
  EXPECT_EQ(conclude_guard(slow, {}, Guarded::kPlan).verdict, Verdict::kInconclusive);
  EXPECT_EQ(conclude_guard(usual, {}, Guarded::kPlan).verdict, Verdict::kPass);
}

TEST(GuardMovements, FewBlocksTellNothing) {
  const std::vector<GuardedValue> good = Machine(0.01).measure(1);
  const std::vector<GuardedValue> hasty = Machine(0.01).measure(2, 5);
  EXPECT_EQ(conclude_guard(find_movements(good, hasty), {}, Guarded::kPlan).verdict,
            Verdict::kInconclusive);
  EXPECT_EQ(conclude_guard({}, {}, Guarded::kPlan).verdict, Verdict::kInconclusive);
}

TEST(GuardMovements, NeitherBlockMayBeTooUnsteadyOrTooShort) {
  const std::vector<GuardedValue> good = Machine(0.01).measure(1);
  const std::vector<Movement> steady = find_movements(good, Machine(0.01).measure(2));
  const std::vector<Movement> unsteady = find_movements(good, Machine(0.3).measure(3));
  for (const auto& [first, second] : {std::pair{steady, unsteady}, {unsteady, steady}}) {
    const GuardConclusion conclusion = conclude_guard(first, {second}, Guarded::kPlan);
    EXPECT_EQ(conclusion.verdict, Verdict::kInconclusive);
    EXPECT_NE(conclusion.reason.find("scatters by"), std::string::npos) << conclusion.reason;
  }
  const std::vector<Movement> hasty = find_movements(good, Machine(0.01).measure(4, 5));
  EXPECT_EQ(conclude_guard(steady, {hasty}, Guarded::kPlan).reason,
            "only 5 blocks count, 6 are needed, in the second measurement");
  EXPECT_EQ(conclude_guard(steady, {{}}, Guarded::kPlan).verdict, Verdict::kInconclusive);
}

// A day of two layers and its step, all with the same noise.
std::vector<GuardedValue> two_layers(double a, double b, double noise = 0, int blocks = 9) {
  return {{kStep, "step", a + b, noise, blocks},
          {kLayer, "a", a, noise, blocks},
          {kLayer, "b", b, noise, blocks}};
}

TEST(GuardMovements, AnAlarmHasTheNumbersOfTheWholeTraceAndShowsInBothHalves) {
  const std::vector<GuardedValue> good = two_layers(10e6, 10e6);
  const std::vector<Movement> whole = find_movements(good, two_layers(10e6, 14e6));
  const std::vector<Movement> less = find_movements(good, two_layers(10e6, 12e6));
  const std::vector<Movement> more = find_movements(good, two_layers(10e6, 16e6));
  const std::vector<Movement> none = find_movements(good, two_layers(10e6, 10.2e6));
  const GuardConclusion failed = conclude_guard(whole, {less, more}, Guarded::kTrace);
  EXPECT_EQ(failed.verdict, Verdict::kFail);
  ASSERT_EQ(names_of(failed.alarms), Names{"b"});
  EXPECT_DOUBLE_EQ(failed.alarms[0].own_ratio, 1.4);
  EXPECT_EQ(conclude_guard(none, {less, more}, Guarded::kTrace).verdict, Verdict::kPass);
  const GuardConclusion passed = conclude_guard(whole, {more, none}, Guarded::kTrace);
  EXPECT_EQ(passed.verdict, Verdict::kPass);
  ASSERT_EQ(passed.unconfirmed.size(), 2U);
  EXPECT_EQ(passed.unconfirmed[1].movement.name, "b");
  EXPECT_EQ(passed.unconfirmed[1].reason,
            "in the second half its ratio over the host's is 1.020 (bar 3.0 %)");
}

TEST(GuardMovements, NoiseGoesBeforeAnAlarm) {
  const std::vector<GuardedValue> good = two_layers(10e6, 10e6);
  const std::vector<Movement> steady = find_movements(good, two_layers(10e6, 30e6, 0.01));
  const std::vector<Movement> noisy = find_movements(good, two_layers(10e6, 30e6, 0.11));
  EXPECT_EQ(conclude_guard(steady, {steady, steady}, Guarded::kTrace).verdict, Verdict::kFail);
  const GuardConclusion open = conclude_guard(steady, {steady, noisy}, Guarded::kTrace);
  EXPECT_EQ(open.verdict, Verdict::kInconclusive);
  EXPECT_EQ(open.reason,
            "measured too unsteadily: the host scatters by 11.0 % in the second half, and may by "
            "10 % at most");
  EXPECT_TRUE(open.alarms.empty());
  EXPECT_EQ(open.unconfirmed.size(), 2U);
  // A bar that somebody chose to be as wide as the noise holds.
  const std::vector<Movement> wide = find_movements(good, two_layers(10e6, 30e6, 0.11), 0.3);
  EXPECT_EQ(conclude_guard(wide, {wide, wide}, Guarded::kTrace).verdict, Verdict::kFail);
}

TEST(GuardMovements, AGoodDayIsRefusedWhereTheSameDayLaterTellsNothing) {
  const auto refuse = [](const std::vector<GuardedValue>& day, const auto&... halves) {
    return refuse_good_day(day, {halves...}, Guarded::kTrace);
  };
  const std::vector<GuardedValue> good = two_layers(10e6, 10e6, 0.01);
  EXPECT_EQ(refuse(good, good, good), "");
  EXPECT_EQ(refuse(good, good, two_layers(10e6, 10e6, 0.106)),
            "measured too unsteadily: the host scatters by 10.6 % in the second half, and may by "
            "10 % at most");
  EXPECT_EQ(refuse(two_layers(10e6, 10e6, 0.01, 1), good, good),
            "only 1 step counts, 6 are needed");
  std::vector<GuardedValue> shorter = good;
  shorter.pop_back();
  EXPECT_EQ(refuse(good, shorter, good), "not measured in each half: layer b");
  std::vector<GuardedValue> probed = good;
  probed.push_back({kLink, "latency", 5e4, 0.01, 5});
  EXPECT_EQ(refuse_good_day(probed, {}, Guarded::kPlan),
            "of link latency only 5 blocks count, 6 are needed");
  EXPECT_EQ(refuse_good_day({}, {}, Guarded::kPlan), "only 0 blocks count, 6 are needed");
}

TEST(GuardMovements, ABarAsWideAsTheNoiseIsNoReasonToTellNothing) {
  const std::vector<GuardedValue> good = Machine(0.01).measure(1);
  const std::vector<Movement> wide = find_movements(good, Machine(0.01).measure(2), 0.3);
  EXPECT_EQ(conclude_guard(wide, {}, Guarded::kPlan).verdict, Verdict::kPass);
}

TEST(GuardMovements, WhatIsMissingTodayIsNamedAndLeavesOpenWhetherItMoved) {
  const std::vector<GuardedValue> good = Machine(0.01).measure(1);
  std::vector<GuardedValue> today = Machine(0.01).measure(2);
  ASSERT_EQ(today.back().name, "latency");
  today.pop_back();
  const std::vector<GuardedValue> missing = find_missing(good, today);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing.front(), good.back());
  EXPECT_TRUE(find_missing(today, good).empty());
  const GuardConclusion conclusion =
      conclude_guard(find_movements(good, today), {}, Guarded::kPlan, missing);
  EXPECT_EQ(conclusion.verdict, Verdict::kInconclusive);
  EXPECT_EQ(conclusion.reason, "the baseline has what was not measured today: link latency");
  Machine slow(0.01);
  std::vector<GuardedValue> slower = slow.slow_layer(1, 1.5).measure(3);
  slower.pop_back();
  const std::vector<Movement> moved = find_movements(good, slower);
  EXPECT_EQ(conclude_guard(moved, {moved}, Guarded::kPlan, missing).verdict, Verdict::kFail);
}

TEST(GuardMovements, OnlyAnOpenVerdictHasAReason) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    for (const double noise : {0.01, 0.06, 0.12, 0.3}) {
      const GuardConclusion conclusion = guard(Machine(0.02), Machine(noise), 1000 * seed);
      EXPECT_EQ(conclusion.reason.empty(), conclusion.verdict != Verdict::kInconclusive)
          << conclusion.reason;
    }
  }
}

TEST(GuardMovements, FasterIsToldAndNoAlarm) {
  Machine today(0.01);
  const std::vector<GuardedValue> good = Machine(0.01).measure(1);
  const std::vector<Movement> movements = find_movements(good, today.slow_host(0.8).measure(2));
  EXPECT_EQ(movements.front().kind, kHost);
  EXPECT_EQ(movements.front().moved, Direction::kFaster);
  EXPECT_EQ(conclude_guard(movements, {}, Guarded::kPlan).verdict, Verdict::kPass);
  // A layer that did not gain with the rest has not become slower.
  today.slow_layer(1, 1.2);
  EXPECT_FALSE(needs_confirmation(find_movements(good, today.measure(3))));
}

TEST(GuardMovements, WhatNoClockTellsApartHasNotMoved) {
  const auto day = [](GuardedKind kind, double median) {
    return std::vector<GuardedValue>{{kind, "latency", median, 0, 9}};
  };
  EXPECT_EQ(find_movements(day(kLink, 300), day(kLink, 1300)).front().moved, Direction::kNone);
  EXPECT_EQ(find_movements(day(kLink, 300), day(kLink, 1301)).front().moved, Direction::kSlower);
  EXPECT_EQ(find_movements(day(kPrediction, 1), day(kPrediction, 1.1)).front().moved,
            Direction::kSlower);
}

TEST(GuardMovements, OfTwoLayersTheSlowOneIsNamed) {
  const std::vector<GuardedValue> good{{kLayer, "a", 10e6, 0, 9}, {kLayer, "b", 20e6, 0, 9}};
  const std::vector<GuardedValue> today{{kLayer, "a", 10e6, 0, 9}, {kLayer, "b", 24e6, 0, 9}};
  const std::vector<Movement> movements = find_movements(good, today);
  ASSERT_EQ(movements.size(), 3U);
  EXPECT_DOUBLE_EQ(movements[0].ratio, 1);
  EXPECT_EQ(movements[1].moved, Direction::kNone);
  EXPECT_EQ(movements[2].moved, Direction::kSlower);
  EXPECT_DOUBLE_EQ(movements[2].own_ratio, 1.2);
}

}  // namespace
}  // namespace frazil
