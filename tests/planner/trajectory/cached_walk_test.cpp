// Compares the cheapest walk over plans and caches with every walk there is.

#include "planner/trajectory/cached_walk.h"
#include "planner/trajectory/remaining_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace frazil {
namespace {

// Draws costs of every kind when they are first asked for.
class DrawnCosts {
 public:
  explicit DrawnCosts(std::uint64_t seed) : random_(seed) {}

  CacheCosts costs() {
    return {.step =
                [this](std::size_t k, std::size_t p, HeldFeatures f) {
                  return draw({0, k, p, 0, f, {}});
                },
            .fill =
                [this](std::size_t k, std::size_t p, HeldFeatures f, HeldFeatures from) {
                  return draw({1, k, p, 0, f, from});
                },
            .change =
                [this](std::size_t k, std::size_t a, std::size_t b) {
                  return draw({2, k, a, b, {}, {}});
                }};
  }

 private:
  using Key = std::tuple<int, std::size_t, std::size_t, std::size_t, HeldFeatures, HeldFeatures>;
  Duration draw(const Key& key) {
    const auto [known, is_new] = known_.try_emplace(key);
    if (is_new) known->second = random_() % 12 == 0 ? kFarAway : Duration(random_() % 40);
    return known->second;
  }

  std::mt19937_64 random_;
  std::map<Key, Duration> known_;
};

Duration add(Duration a, Duration b) { return a >= kFarAway || b >= kFarAway ? kFarAway : a + b; }

// Tries every walk, step by step.
class EveryWalk {
 public:
  EveryWalk(const CacheQuestion& question, const CacheCosts& costs)
      : question_(question), costs_(costs) {}

  Duration find() {
    for (std::size_t plan = 0; plan < question_.plans; ++plan) go(0, plan, {}, {}, 0, Duration{0});
    return least_;
  }

 private:
  // `full` can be read; while `left` > 0 it is being turned into `filling`.
  void go(std::size_t k, std::size_t plan, HeldFeatures full, HeldFeatures filling, Step left,
          Duration paid) {
    if (paid >= least_) return;
    if (k == question_.steps.size()) {
      least_ = paid;
      return;
    }
    const int prefix = question_.prefix[k];
    const int before = k == 0 ? 0 : question_.prefix[k - 1];
    hold(k, plan, {}, {}, 0, paid);
    // What was stored at the end of a prefix that stays is stored on, or read; from a deeper prefix
    // nobody comes back to it.
    const int at = (left > 0 ? filling : full).depth;
    if (at > 0 && at == prefix && before == prefix) {
      hold(k, plan, full, filling, left, paid);
      return;
    }
    // A deeper prefix reads what is full, as it is or to go on from.
    const HeldFeatures source = left == 0 && full.depth < prefix ? full : HeldFeatures{};
    if (source.depth > 0) hold(k, plan, source, {}, 0, paid);
    for (const HeldFeatures& room : question_.rooms) {
      if (room.depth == prefix) hold(k, plan, source, room, question_.epoch, paid);
    }
  }

  void hold(std::size_t k, std::size_t plan, HeldFeatures full, HeldFeatures filling, Step left,
            Duration paid) {
    for (Step step = 0; step < question_.steps[k]; ++step) {
      if (left == 0) {
        paid = add(paid, costs_.step(k, plan, full));
        continue;
      }
      paid = add(paid, costs_.fill(k, plan, filling, full));
      if (--left == 0) full = filling;
    }
    for (std::size_t next = 0; next < question_.plans; ++next) {
      const bool ends = k + 1 == question_.steps.size();
      const bool changes = next != plan && !ends;
      go(k + 1, next, full, filling, left,
         changes ? add(paid, costs_.change(k + 1, plan, next)) : paid);
      if (ends) break;
    }
  }

  const CacheQuestion& question_;
  const CacheCosts& costs_;
  Duration least_ = kFarAway;
};

CacheQuestion draw_question(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t most) { return static_cast<int>(random() % most); };
  CacheQuestion question;
  question.plans = 1 + random() % 3;
  question.epoch = 1 + below(9);
  const int segments = 1 + below(5);
  for (int k = 0; k < segments; ++k) {
    question.steps.push_back(1 + below(7));
    const bool stays = k > 0 && below(2) > 0;
    question.prefix.push_back(stays ? question.prefix.back() : below(4));
  }
  for (int depth = 1; depth < 4; ++depth) {
    for (const FeatureTier tier : {FeatureTier::kMemory, FeatureTier::kDisk}) {
      if (below(3) > 0) question.rooms.push_back({depth, tier});
    }
  }
  return question;
}

// Returns the least time of a step that reads features no deeper than `depth` and fills some
// features or none.
Duration find_least_step(const CacheQuestion& question, const CacheCosts& costs, std::size_t k,
                         std::size_t plan, int depth) {
  std::vector<HeldFeatures> readable{{}};
  for (const HeldFeatures& room : question.rooms) {
    if (room.depth <= depth) readable.push_back(room);
  }
  Duration least = kFarAway;
  for (const HeldFeatures& source : readable) {
    least = std::min(least, costs.step(k, plan, source));
    for (const HeldFeatures& room : question.rooms) {
      least = std::min(least, costs.fill(k, plan, room, source));
    }
  }
  return least;
}

TEST(CachedWalk, IsTheSameWithWhatTheRestTakesAtLeast) {
  int found = 0;
  int near = 0;  // walks within a tenth of the least
  for (std::uint64_t seed = 3001; seed <= 4500; ++seed) {
    SCOPED_TRACE(seed);
    CacheQuestion question = draw_question(seed);
    DrawnCosts drawn(seed);
    const CacheCosts costs = drawn.costs();
    const auto walk = find_cached_walk(question, costs);
    const auto least_step = [&](std::size_t k, std::size_t plan, int depth) {
      return find_least_step(question, costs, k, plan, depth);
    };
    question.rest = find_remaining_bound(question, least_step, costs);
    if (!walk) {
      ASSERT_FALSE(find_cached_walk(question, costs).has_value());
      continue;
    }
    ++found;
    Duration least = kFarAway;
    for (const RemainingBound& rest : question.rest.front()) least = std::min(least, rest.begin);
    ASSERT_LE(least, walk->total);
    near += 10 * least >= 9 * walk->total ? 1 : 0;
    question.limit = walk->total;
    const auto again = find_cached_walk(question, costs);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->total, walk->total);
    EXPECT_EQ(again->plans, walk->plans);
    EXPECT_EQ(again->caches, walk->caches);
    --question.limit;
    EXPECT_FALSE(find_cached_walk(question, costs).has_value());
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(near, 50);
}

TEST(CachedWalk, ReadsACacheAnEpochAfterItCouldBeginToFill) {
  CacheQuestion question;
  question.steps = {10, 10, 10, 10};
  question.prefix = {1, 3, 2, 3};
  for (int depth = 1; depth <= 3; ++depth) {
    question.rooms.push_back({depth, FeatureTier::kMemory});
  }
  question.epoch = 4;
  using Readable = std::vector<ReadableSteps>;
  EXPECT_EQ(list_readable(question),
            (std::vector<Readable>{
                {{4, 0}, {6, 1}}, {{4, 1}, {6, 3}}, {{4, 1}, {6, 2}}, {{4, 2}, {6, 3}}}))
      << "what was three deep is lost where two are left";
  question.epoch = 15;
  EXPECT_EQ(list_readable(question),
            (std::vector<Readable>{{{10, 0}}, {{5, 0}, {5, 1}}, {{10, 1}}, {{5, 1}, {5, 2}}}));
  question.rooms.erase(question.rooms.begin());
  EXPECT_EQ(list_readable(question)[1], (Readable{{10, 0}})) << "there is no room for one layer";
}

TEST(CachedWalk, IsTheCheapestOfAll) {
  int found = 0;
  int caching = 0;
  int carried = 0;  // fills that outlast their segments
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(seed);
    const CacheQuestion question = draw_question(seed);
    DrawnCosts drawn(seed);
    const CacheCosts costs = drawn.costs();
    const auto walk = find_cached_walk(question, costs);
    const Duration least = EveryWalk(question, costs).find();
    ASSERT_EQ(walk.has_value(), least < kFarAway);
    if (!walk) continue;
    ++found;
    ASSERT_EQ(walk->total, least);
    CacheQuestion limited = question;
    limited.limit = least;
    ASSERT_EQ(find_cached_walk(limited, costs)->total, least);
    limited.limit = least - Duration{1};
    ASSERT_FALSE(find_cached_walk(limited, costs).has_value());
    for (std::size_t k = 0; k < walk->caches.size(); ++k) {
      const HeldCache& cache = walk->caches[k];
      EXPECT_LE(cache.features.depth, question.prefix[k]);
      caching += cache.features.depth > 0 ? 1 : 0;
      carried += k > 0 && cache.left > 0 && cache.left < question.epoch ? 1 : 0;
    }
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(caching, 500);
  EXPECT_GT(carried, 50);
}

// The total is the sum of what the walk says it holds in each segment.
TEST(CachedWalk, CostsWhatItsPartsCost) {
  for (std::uint64_t seed = 2001; seed <= 2200; ++seed) {
    SCOPED_TRACE(seed);
    const CacheQuestion question = draw_question(seed);
    DrawnCosts drawn(seed);
    const CacheCosts costs = drawn.costs();
    const auto walk = find_cached_walk(question, costs);
    if (!walk) continue;
    Duration total{0};
    for (std::size_t k = 0; k < walk->plans.size(); ++k) {
      const HeldCache& cache = walk->caches[k];
      const std::size_t plan = walk->plans[k];
      if (k > 0 && walk->plans[k - 1] != plan) total += costs.change(k, walk->plans[k - 1], plan);
      const Step filling = std::min(cache.left, question.steps[k]);
      if (filling > 0) total += filling * costs.fill(k, plan, cache.features, cache.source);
      if (filling < question.steps[k]) {
        total += (question.steps[k] - filling) * costs.step(k, plan, cache.features);
      }
    }
    EXPECT_EQ(total, walk->total);
  }
}

}  // namespace
}  // namespace frazil
