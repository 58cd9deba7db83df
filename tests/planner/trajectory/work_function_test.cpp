// Tests the rule that knows nothing of the future: its hindsight agrees with the shortest path, and
// it never pays more than its bound.

#include "planner/trajectory/work_function.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/trajectory/cheapest_walk.h"

namespace frazil {
namespace {

Duration draw(std::mt19937& random, int least, int most) {
  return Duration{least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1))};
}

Prices random_metric(std::mt19937& random, std::size_t states) {
  Prices prices(states, std::vector<Duration>(states));
  for (std::vector<Duration>& row : prices) {
    for (Duration& price : row) price = draw(random, 1, 40);
  }
  return make_metric(prices);
}

TEST(WorkFunction, ChargesAMetric) {
  const unsigned seed = 5;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 200; ++trial) {
    const Prices metric = random_metric(random, 5);
    for (std::size_t a = 0; a < 5; ++a) {
      ASSERT_EQ(metric[a][a], Duration{0});
      for (std::size_t b = 0; b < 5; ++b) {
        ASSERT_EQ(metric[a][b], metric[b][a]);
        for (std::size_t via = 0; via < 5; ++via) {
          ASSERT_LE(metric[a][b], metric[a][via] + metric[via][b]);
        }
      }
    }
  }
}

// Tasks are drawn at random, or are the worst ones: those that cost something only where the rule
// stands.
TEST(WorkFunction, NeverPaysMoreThanItsBoundAndKnowsWhatHindsightPays) {
  const unsigned seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  double worst = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const std::size_t states = 1 + random() % 5;
    const Prices metric = random_metric(random, states);
    const std::size_t start = random() % states;
    WorkFunction rule(metric, start);
    TrajectoryCosts costs;
    costs.start = start;
    Duration paid{0};
    for (int t = 0; t < 60; ++t) {
      std::vector<Duration> task(states);
      for (std::size_t s = 0; s < states; ++s) {
        if (trial % 2 == 0) {
          task[s] = draw(random, 0, 9);
        } else {
          task[s] = Duration{s == rule.state() ? 3 : 0};
        }
        if (states > 1 && trial % 6 == 0 && s == static_cast<std::size_t>(t) % states) {
          task[s] = kFarAway;
        }
      }
      const std::size_t before = rule.state();
      const std::size_t state = rule.serve(task);
      paid += metric[before][state] + task[state];
      costs.hold.push_back(task);
      costs.change.push_back(metric);
    }
    ASSERT_EQ(rule.paid(), paid) << "trial " << trial;
    ASSERT_EQ(rule.hindsight(), find_trajectory(costs)->total) << "trial " << trial;
    ASSERT_LE(rule.paid(), rule.hindsight() * static_cast<int>(rule.factor()) + rule.additive())
        << "trial " << trial;
    if (rule.hindsight().count() > 0) {
      worst = std::max(worst, static_cast<double>(rule.paid().count()) /
                                  static_cast<double>(rule.hindsight().count()));
    }
  }
  EXPECT_GT(worst, 2) << "the cruel tasks hurt";
}

// The skiing problem: renting costs 1 a day, buying or selling skis 10. Renting ends when it has
// cost what buying and selling would have, so the rule pays its factor, 3, times hindsight's 10.
TEST(WorkFunction, RentsUntilBuyingAndSellingWouldHavePaid) {
  const Prices metric{{Duration{0}, Duration{10}}, {Duration{10}, Duration{0}}};
  WorkFunction rule(metric, 0);
  int rented = 0;
  while (rule.serve({Duration{1}, Duration{0}}) == 0) ++rented;
  EXPECT_EQ(rented, 20);
  EXPECT_EQ(rule.paid(), Duration{30});
  EXPECT_EQ(rule.hindsight(), Duration{10});
  EXPECT_EQ(rule.factor(), 3U);
}

// Equal tasks at once are what they are one by one, at every count, whatever came before; zero
// prices, zero costs and tasks that cannot be done everywhere included.
TEST(WorkFunction, ServesManyEqualTasksAsOneByOne) {
  const unsigned seed = 20261126;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t states = 1 + random() % 5;
    Prices prices(states, std::vector<Duration>(states));
    for (std::vector<Duration>& row : prices) {
      for (Duration& price : row) price = draw(random, trial % 3 == 0 ? 0 : 1, 60);
    }
    WorkFunction together(make_metric(prices), random() % states);
    WorkFunction single = together;
    for (int round = 0; round < 8; ++round) {
      std::vector<Duration> task(states);
      for (Duration& cost : task) cost = draw(random, 0, 5);
      if (states > 1 && random() % 4 == 0) task[random() % states] = kFarAway;
      const int count = static_cast<int>(random() % 90);
      together.serve(task, count);
      for (int i = 0; i < count; ++i) single.serve(task);
      ASSERT_EQ(together.state(), single.state()) << "trial " << trial << ", round " << round;
      ASSERT_EQ(together.paid(), single.paid()) << "trial " << trial << ", round " << round;
      ASSERT_EQ(together.changes(), single.changes()) << "trial " << trial << ", round " << round;
      ASSERT_EQ(together.hindsight(), single.hindsight());
    }
  }
}

// States come while tasks are served. The rule decides as one that had them all from the beginning
// and could do none of the tasks before in them, where the prices make a metric.
TEST(WorkFunction, TakesStatesThatComeLateAsIfTheyHadBeenThere) {
  const unsigned seed = 20261127;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 500; ++trial) {
    const std::size_t states = 2 + random() % 5;
    const Prices metric = random_metric(random, states);
    WorkFunction all(metric, 0);
    WorkFunction growing(Prices{{Duration{0}}}, 0);
    std::size_t known = 1;
    for (int t = 0; t < 60; ++t) {
      if (known < states && random() % 8 == 0) {
        growing.add_state({metric[known].begin(), metric[known].begin() + static_cast<int>(known)});
        ++known;
      }
      std::vector<Duration> task(states, kFarAway);
      for (std::size_t s = 0; s < known; ++s) task[s] = draw(random, 0, 9);
      const std::vector<Duration> own(task.begin(), task.begin() + static_cast<int>(known));
      ASSERT_EQ(growing.serve(own), all.serve(task)) << "trial " << trial;
    }
    ASSERT_EQ(growing.paid(), all.paid());
    ASSERT_EQ(growing.hindsight(), all.hindsight());
  }
}

// Prices that make no metric with those that there are: none is an excuse for more than the bound.
TEST(WorkFunction, StaysWithinItsBoundWhateverALateStateCosts) {
  const unsigned seed = 77;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 500; ++trial) {
    WorkFunction rule(random_metric(random, 1 + random() % 3), 0);
    for (int t = 0; t < 50; ++t) {
      if (random() % 10 == 0) {
        std::vector<Duration> prices(rule.states());
        for (Duration& price : prices) price = draw(random, 0, 90);
        rule.add_state(prices);
      }
      std::vector<Duration> task(rule.states());
      for (std::size_t s = 0; s < task.size(); ++s) task[s] = Duration{s == rule.state() ? 7 : 0};
      rule.serve(task, 1 + static_cast<Step>(random() % 4));
    }
    ASSERT_LE(rule.hindsight(), rule.paid());
    ASSERT_LE(rule.paid(), rule.hindsight() * static_cast<int>(rule.factor()) + rule.additive());
  }
}

// A day's rent is one part in 10^12 of the price of skis: nobody waits for the days to pass.
TEST(WorkFunction, TakesNoLongerForMoreTasks) {
  const Duration price{1'000'000'000'000};
  WorkFunction rule({{Duration{0}, price}, {price, Duration{0}}}, 0);
  EXPECT_EQ(rule.serve({Duration{1}, Duration{0}}, 2 * price.count()), 0U);
  EXPECT_EQ(rule.serve({Duration{1}, Duration{0}}, 1), 1U);
  EXPECT_EQ(rule.paid(), 3 * price);
  EXPECT_EQ(rule.hindsight(), price);
}

}  // namespace
}  // namespace frazil
