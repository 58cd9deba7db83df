#include "sim/jitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

#include "sim/static_engine.h"
#include "tests/sim/random_graph.h"

namespace frazil {
namespace {

// The numbers were worked out in Python's integers from the definition; the hash of 0 is the first
// output of splitmix64 with seed 0, 0xe220a8397b1dcdaf.
TEST(Noise, IsTheSameOnEveryMachine) {
  struct Case {
    Noise noise;
    TaskId task;
    std::int64_t price;
    std::int64_t noisy;
  };
  const std::vector<Case> cases = {
      {{.seed = 0, .draw = 0, .amplitude_ppm = 100'000}, 0, 1'000'000'000, 927'741'882},
      {{.seed = 0, .draw = 0, .amplitude_ppm = 100'000}, 1, 1'000'000'000, 951'653'089},
      {{.seed = 0, .draw = 1, .amplitude_ppm = 100'000}, 0, 1'000'000'000, 1'016'071'846},
      {{.seed = 1, .draw = 0, .amplitude_ppm = 100'000}, 0, 1'000'000'000, 1'038'702'427},
      {{.seed = 42, .draw = 7, .amplitude_ppm = 1'000'000},
       123'456,
       1'000'000'000'000,
       1'060'680'612'456},
      {{.seed = 42, .draw = 199, .amplitude_ppm = 250'000},
       4,
       3'000'000'000'000'000,
       3'189'720'196'416'601},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(NoisyPrices(each.noise)(each.price, each.task), each.noisy);
  }
}

TEST(Noise, OfZeroChangesNothing) {
  const NoisyPrices noisy({.seed = 5, .draw = 9, .amplitude_ppm = 0});
  for (const std::int64_t price : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 62}) {
    EXPECT_EQ(noisy(price, 3), price);
  }
}

// The noise is evenly spread: mean 1 and variance a^2 / 3, within four standard errors of 100000
// draws.
TEST(Noise, SpreadsEvenlyAroundThePrice) {
  constexpr int kDraws = 100'000;
  constexpr double kPrice = 1e9;
  constexpr double kAmplitude = 0.3;
  const NoisyPrices noisy({.seed = 11, .draw = 0, .amplitude_ppm = 300'000});
  double sum = 0;
  double squares = 0;
  for (TaskId task = 0; task < kDraws; ++task) {
    const double off = static_cast<double>(noisy(1'000'000'000, task)) / kPrice - 1;
    EXPECT_LE(std::abs(off), kAmplitude + 1e-9);
    sum += off;
    squares += off * off;
  }
  const double variance = kAmplitude * kAmplitude / 3;
  EXPECT_NEAR(sum / kDraws, 0, 4 * std::sqrt(variance / kDraws));
  EXPECT_NEAR(squares / kDraws, variance, 4 * variance * std::sqrt(0.8 / kDraws));
}

TEST(Noise, RefusesAmplitudesBeyondTheWholePrice) {
  EXPECT_THROW(NoisyPrices({.seed = 0, .draw = 0, .amplitude_ppm = 1'000'001}), std::logic_error);
  EXPECT_THROW(NoisyPrices({.seed = 0, .draw = 0, .amplitude_ppm = -1}), std::logic_error);
}

struct Sample {
  TaskGraph graph;
  std::vector<Duration> prices;

  explicit Sample(std::uint64_t seed) : graph(make_random_graph(seed, seed).graph) {
    Random random(seed);
    prices = random_prices(random, graph);
  }
  std::vector<Duration> draws(const Jitter& jitter) const {
    return draw_makespans(prepare_events(graph, {}), prices, jitter);
  }
};

TEST(Jitter, OfAmplitudeZeroEqualsTheBase) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const Sample sample(seed);
    SweepTimes times;
    evaluate(compile(sample.graph), sample.prices, times);
    EXPECT_EQ(sample.draws({.seed = seed, .draws = 5, .amplitude_ppm = 0}),
              std::vector(5, latest_end(times)));
  }
}

TEST(Jitter, EqualSeedsGiveEqualDrawsAndDrawsDiffer) {
  const Sample sample(4);
  const Jitter jitter{.seed = 7, .draws = 200, .amplitude_ppm = 100'000};
  const std::vector<Duration> draws = sample.draws(jitter);
  EXPECT_EQ(draws.size(), 200U);
  EXPECT_EQ(sample.draws(jitter), draws);
  EXPECT_GT(std::set(draws.begin(), draws.end()).size(), 150U);
  EXPECT_NE(sample.draws({.seed = 8, .draws = 200, .amplitude_ppm = 100'000}), draws);
}

// More draws begin with the same ones.
TEST(Jitter, EveryDrawIsItsOwn) {
  const Sample sample(4);
  const std::vector<Duration> few = sample.draws({.seed = 7, .draws = 10});
  const std::vector<Duration> many = sample.draws({.seed = 7, .draws = 30});
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

// A makespan is a sum of prices and delays along some path. Every price stays within 20 %, but for
// less than a ns by which it is rounded down.
TEST(Jitter, StaysWithinItsAmplitude) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const Sample sample(seed);
    const Duration base = sample.draws({.seed = 0, .draws = 1, .amplitude_ppm = 0}).front();
    const auto tasks = static_cast<std::int64_t>(sample.graph.size());
    for (const Duration draw : sample.draws({.seed = 1, .draws = 20, .amplitude_ppm = 200'000})) {
      EXPECT_LE(5 * draw.count(), 6 * base.count());
      EXPECT_GE(5 * draw.count(), 4 * base.count() - 5 * tasks);
    }
  }
}

// The times of a single task are those of the noise itself.
TEST(Jitter, OfOneTaskIsTheNoise) {
  TaskGraph graph;
  graph.add_task(graph.add_lane(DeviceId{0}, Lane::kCompute), graph.add_work(Fixed{}));
  const std::vector<Duration> prices = {Duration{1'000'000'000}};
  EXPECT_EQ(draw_makespans(prepare_events(graph, {}), prices,
                           {.seed = 0, .draws = 2, .amplitude_ppm = 100'000}),
            (std::vector{Duration{927'741'882}, Duration{1'016'071'846}}));
}

// Shared works have their noise: two flows of a and b ns over one link end at twice the shorter and
// at a + b.
TEST(Jitter, ReachesTasksThatShare) {
  TaskGraph graph;
  const WorkId work = graph.add_work(Fixed{});
  for (int i = 0; i < 2; ++i) graph.add_task(graph.add_lane(DeviceId{0}, Lane::kSend), work);
  EventOptions options;
  const std::vector<ResourceId> link = {options.sharing.add_resource(1)};
  options.sharing.draw(work, 1, link);
  EventTimes times;
  const std::vector<Duration> prices = {Duration{1'000'000'000}};
  run_events(prepare_events(graph, options), prices, times,
             {.seed = 0, .draw = 0, .amplitude_ppm = 100'000});
  EXPECT_EQ(times.of,
            (std::vector<TaskTimes>{{0, 2 * 927'741'882L}, {0, 927'741'882L + 951'653'089L}}));
}

TEST(Jitter, SpreadsAreNearestRanks) {
  std::vector<Duration> makespans;
  for (int i = 10; i > 0; --i) makespans.emplace_back(i);
  EXPECT_EQ(find_spread(makespans),
            (Spread{.p10 = Duration{1}, .median = Duration{5}, .p90 = Duration{9}}));
  makespans.emplace_back(11);
  EXPECT_EQ(find_spread(makespans),
            (Spread{.p10 = Duration{2}, .median = Duration{6}, .p90 = Duration{10}}));
  EXPECT_EQ(find_spread({Duration{3}}),
            (Spread{.p10 = Duration{3}, .median = Duration{3}, .p90 = Duration{3}}));
  EXPECT_THROW(find_spread({}), std::logic_error);
}

}  // namespace
}  // namespace frazil
