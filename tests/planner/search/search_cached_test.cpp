// Tests the search over plans that may cache the frozen prefix.

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/actions/validate_plan.h"
#include "planner/plan/activity.h"
#include "planner/search/search.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr int kLayers = 8;
constexpr Bytes kPlenty{10'000'000};

// Makes layers of 10 us F, 20 us I and 30 us W, with 1000 bytes of parameters each.
const ModelProfile& chain() {
  static const ModelProfile profile =
      make_chain(kLayers, microseconds(10), microseconds(20), microseconds(30));
  return profile;
}

Cluster devices(int count, Bytes memory = kPlenty) {
  return make_uniform_cluster(count, memory, {microseconds(1), BytesPerSecond{1'000'000'000}});
}

SearchOptions options_of(const std::string& mask) {
  SearchOptions options;
  options.batch_size = 8;
  options.micro_batch_sizes = {1, 2};
  options.mask = FreezeMask::parse(mask, "test", 1);
  options.max_replicas = 1;
  options.cache = true;
  options.keep = 0;
  return options;
}

// Returns the number of cached layers, which no later stage may hold.
int prefix_of(const Plan& plan) { return find_activity(chain(), plan).cached; }

TEST(CachedSearch, TakesTheForwardsOfThePrefixFromTheStep) {
  SearchOptions options = options_of("00011111");
  options.micro_batch_sizes = {1};
  const Cluster cluster = devices(1);
  const Ranking ranking = search_plans({chain(), cluster}, options);
  ASSERT_NE(ranking.best(), nullptr);
  EXPECT_TRUE(ranking.best()->plan.cache_frozen_prefix);
  // Five layers train, the first of them without I.
  EXPECT_EQ(ranking.best()->makespan, 8 * (5 * microseconds(60) - microseconds(20)));
  options.cache = false;
  EXPECT_EQ(search_plans({chain(), cluster}, options).best()->makespan,
            ranking.best()->makespan + 8 * 3 * microseconds(10));
}

TEST(CachedSearch, IsTheSearchWithoutWhereNothingIsFrozenBeforeTheFirstLayerThatTrains) {
  const Cluster cluster = devices(4);
  for (const char* mask : {"11111111", "10001111"}) {
    SearchOptions options = options_of(mask);
    const Ranking cached = search_plans({chain(), cluster}, options);
    options.cache = false;
    const Ranking without = search_plans({chain(), cluster}, options);
    ASSERT_EQ(cached.candidates.size(), without.candidates.size()) << mask;
    for (std::size_t c = 0; c < cached.candidates.size(); ++c) {
      EXPECT_EQ(cached.candidates[c].plan, without.candidates[c].plan) << mask;
      EXPECT_EQ(cached.candidates[c].makespan, without.candidates[c].makespan) << mask;
    }
  }
}

TEST(CachedSearch, CutsNoPrefixAndOffersWhatIsTooLongWithoutTheCacheAlone) {
  SearchOptions options = options_of("00000111");
  options.schedules = {ScheduleKind::kOneForwardOneBackward, ScheduleKind::kChimera,
                       ScheduleKind::kInterleaved};
  options.joint = true;
  int cached = 0;
  int both_ways = 0;
  const Cluster cluster = devices(4);
  const Ranking ranking = search_plans({chain(), cluster}, options);
  for (const Candidate& candidate : ranking.candidates) {
    const Plan& plan = candidate.plan;
    if (candidate.memory.empty()) continue;  // refused
    const std::vector<Stage>& stages = plan.pipelines.front().stages;
    EXPECT_NO_THROW(validate(plan, {chain(), cluster}, "plan"));
    if (!plan.cache_frozen_prefix) continue;
    ++cached;
    both_ways += plan.pipelines.size() == 2 ? 1 : 0;
    EXPECT_EQ(prefix_of(plan), 5);
    EXPECT_LE(stages.size(), 4U) << "the prefix, then a layer in each stage";
  }
  EXPECT_GT(cached, 20);
  EXPECT_GT(both_ways, 2) << "each of two directions begins with the whole prefix";
  EXPECT_GT(static_cast<int>(ranking.candidates.size()), 2 * cached)
      << "all go without, too, and interleaved ones with eight stages only so";
}

// A frozen layer holds 1000 bytes, one that trains less than 5000.
TEST(CachedSearch, GoesWithoutWhereThePrefixIsTooLargeForOneDevice) {
  SearchOptions options = options_of("00000011");
  options.keep = 2;
  options.reduction = ReductionMode::kFast;
  const Cluster with_room = devices(4);
  const Ranking roomy = search_plans({chain(), with_room}, options);
  ASSERT_NE(roomy.best(), nullptr);
  EXPECT_TRUE(roomy.best()->plan.cache_frozen_prefix);
  const Cluster without_room = devices(4, Bytes{5'900});
  const Ranking tight = search_plans({chain(), without_room}, options);
  ASSERT_NE(tight.best(), nullptr);
  EXPECT_FALSE(tight.best()->plan.cache_frozen_prefix);
}

// The prefix weighs nothing without F, so the first stage also takes layers that train. Plans that
// are cut for a prefix that runs, and then cached, are slower.
TEST(CachedSearch, CutsForTheStepThatReadsAndNotForTheOneThatRuns) {
  SearchOptions options = options_of("00001111");
  options.micro_batch_sizes = {1};
  options.keep = 2;
  const Cluster cluster = devices(3);
  const Ranking cached = search_plans({chain(), cluster}, options);
  options.cache = false;
  options.keep = 0;
  Duration repriced = Duration::max();
  for (const Candidate& candidate : search_plans({chain(), cluster}, options).candidates) {
    Plan plan = candidate.plan;
    plan.cache_frozen_prefix = true;
    const Candidate judged = judge_plan(plan, {chain(), cluster}, false);
    if (!judged.infeasible) repriced = std::min(repriced, judged.makespan);
  }
  EXPECT_LT(cached.best()->makespan, repriced);
}

}  // namespace
}  // namespace frazil
