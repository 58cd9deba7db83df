// Compares going on under another mask with trying the held plan and every plan there is.

#include <gtest/gtest.h>

#include <random>

#include "planner/bounds/shape.h"
#include "planner/schedules/make_schedule.h"
#include "planner/search/search.h"
#include "planner/transitions/replan.h"
#include "tests/planner/support/search_cases.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

FreezeMask draw_mask(int blocks, std::mt19937_64& random) {
  FreezeMask mask = FreezeMask::all_active(blocks);
  for (int block = 0; block + 1 < blocks; ++block) {
    mask.set_active(BlockId{block}, random() % 3 != 0);
  }
  return mask;
}

// Draws a plan that fits, some way down the ranking, so that transitions are worth while.
std::optional<HeldState> draw_held(const SearchQuestion& question, std::mt19937_64& random) {
  SearchOptions options = question.options;
  options.keep = 0;
  const Ranking all = search_plans({question.profile, question.cluster}, options);
  std::size_t feasible = 0;
  while (feasible < all.candidates.size() && !all.candidates[feasible].infeasible) ++feasible;
  if (feasible == 0) return std::nullopt;
  HeldState held;
  held.plan = all.candidates[random() % feasible].plan;
  held.steps = static_cast<std::int64_t>(1 + random() % 40);
  held.trained = options.mask;
  held.overhead = {microseconds(random() % 100), microseconds(random() % 100)};
  return held;
}

TEST(Replan, WithSearchedCutsNeverCostsMoreAndSometimesLess) {
  int less = 0;
  for (std::uint64_t seed = 1; seed <= 160; ++seed) {
    SCOPED_TRACE(seed);
    const SearchQuestion question = draw_search_question(seed);
    std::mt19937_64 random(seed);
    std::optional<HeldState> held = draw_held(question, random);
    if (!held) continue;
    if (seed % 2 == 0) held->steps = 1000;
    PlanSearch search({question.profile, question.cluster});
    const auto ask = [&](std::int64_t effort) {
      SearchOptions options = question.options;
      options.keep = 8;
      options.cut_effort = effort;
      return replan(search, {question.profile, question.cluster}, *held, options);
    };
    const auto plain = ask(0);
    const auto moved = ask(kCutEffort);
    ASSERT_EQ(plain.has_value(), moved.has_value());
    if (!plain) continue;
    const auto total = [&](const Replan& next) {
      return next.next.makespan * held->steps + next.cost.total;
    };
    EXPECT_LE(total(*moved), total(*plain));
    less += total(*moved) < total(*plain) ? 1 : 0;
  }
  EXPECT_GT(less, 5);
}

TEST(Replan, TakesWhatCostsLeastOfTheHeldPlanAndAllOthers) {
  int stays = 0;
  int goes = 0;
  int cheaper_than_fastest = 0;
  for (std::uint64_t seed = 1; seed <= 160; ++seed) {
    SCOPED_TRACE(seed);
    const SearchQuestion question = draw_search_question(seed);
    std::mt19937_64 random(seed);
    const std::optional<HeldState> held = draw_held(question, random);
    if (!held) continue;
    SearchOptions options = question.options;
    options.mask = draw_mask(options.mask.blocks(), random);
    PlanSearch search({question.profile, question.cluster});
    const auto next = replan(search, {question.profile, question.cluster}, *held, options);

    Plan same = held->plan;
    same.mask = options.mask;
    std::optional<Duration> least;
    const Candidate going_on = judge_plan(same, {question.profile, question.cluster},
                                          {.clip = options.clip, .overlap = options.overlap});
    if (!going_on.infeasible) least = going_on.makespan * held->steps;
    options.keep = 0;
    const Ranking all = search_plans({question.profile, question.cluster}, options);
    const Activity trained = find_activity(question.profile, held->trained);
    for (const Candidate& candidate : all.candidates) {
      if (candidate.infeasible) break;
      const Duration cost =
          candidate.makespan * held->steps + price_transition(held->plan, candidate.plan,
                                                              {question.profile, question.cluster},
                                                              trained, held->overhead)
                                                 .total;
      if (!least || cost < *least) least = cost;
    }
    ASSERT_EQ(next.has_value(), least.has_value());
    if (!next) continue;
    EXPECT_EQ(next->next.makespan * held->steps + next->cost.total, *least)
        << summarize(next->next.plan);
    EXPECT_FALSE(next->next.infeasible.has_value());
    (next->stays ? stays : goes) += 1;
    if (next->stays) {
      EXPECT_EQ(next->cost.total, Duration{0});
    }
    if (all.best() != nullptr && next->next.makespan > all.best()->makespan) ++cheaper_than_fastest;
  }
  EXPECT_GT(stays, 20);
  EXPECT_GT(goes, 20);
  EXPECT_GT(cheaper_than_fastest, 10);
}

// The held plan is one that no search makes: it has a size that is not offered, devices that
// pipelines share, stages on several devices, and given lists.
TEST(Replan, BeginsFromAnyPlan) {
  const ModelProfile profile = make_chain(4, microseconds(90), microseconds(110), microseconds(70));
  const Cluster cluster =
      make_uniform_cluster(2, Bytes{1'000'000'000}, {microseconds(2), BytesPerSecond{}});
  SearchOptions options;
  options.batch_size = 8;
  options.micro_batch_sizes = {2};
  options.schedules = synchronous_schedules();
  options.joint = true;
  options.mask = FreezeMask::parse("0011", "test", 1);
  HeldState held;
  held.plan.model_hash = model_hash(profile);
  held.plan.batch_size = 8;
  held.plan.micro_batch_size = 1;
  held.plan.mask = FreezeMask::all_active(4);
  held.plan.schedule = NamedSchedule{ScheduleKind::kGpipe, std::nullopt, 1};
  held.plan.pipelines = {make_pipeline(4, {LayerId{2}}, {DeviceId{0}, DeviceId{1}},
                                       {MicroBatchId{0}, MicroBatchId{7}})};
  held.steps = 10;
  held.trained = held.plan.mask;
  held.overhead.start = std::chrono::seconds(1);
  std::vector<HeldState> states(4, held);
  states[1].plan.micro_batch_size = 2;
  states[1].plan.pipelines = {make_pipeline(4, {LayerId{2}}, {DeviceId{0}, DeviceId{1}},
                                            {MicroBatchId{0}, MicroBatchId{1}}),
                              make_pipeline(4, {LayerId{2}}, {DeviceId{1}, DeviceId{0}},
                                            {MicroBatchId{2}, MicroBatchId{3}})};
  states[2].plan.pipelines.front().stages[0].devices = {DeviceId{0}, DeviceId{1}};
  states[3].plan.schedule = ExplicitSchedule{make_schedule(held.plan, 2).devices};
  PlanSearch search({profile, cluster});
  for (const HeldState& state : states) {
    const auto next = replan(search, {profile, cluster}, state, options);
    ASSERT_TRUE(next.has_value());
    Plan same = state.plan;
    same.mask = options.mask;
    const Candidate going_on = judge_plan(same, {profile, cluster}, options.clip);
    EXPECT_EQ(next->stays, !going_on.infeasible.has_value());
    if (next->stays) {
      EXPECT_EQ(next->next.makespan, going_on.makespan);
    }
  }
}

TEST(Replan, OfASearchThatWasAskedBeforeIsThatOfAFreshOne) {
  for (std::uint64_t seed = 500; seed < 540; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_search_question(seed);
    question.options.keep = 3;
    PlanSearch search({question.profile, question.cluster});
    std::mt19937_64 random(seed);
    for (int again = 0; again < 4; ++again) {
      question.options.mask = draw_mask(question.options.mask.blocks(), random);
      const Ranking kept = search.search(question.options);
      const Ranking fresh = search_plans({question.profile, question.cluster}, question.options);
      ASSERT_EQ(kept.candidates.size(), fresh.candidates.size());
      for (std::size_t c = 0; c < kept.candidates.size(); ++c) {
        EXPECT_EQ(kept.candidates[c].plan, fresh.candidates[c].plan);
        EXPECT_EQ(kept.candidates[c].makespan, fresh.candidates[c].makespan);
      }
      EXPECT_EQ(kept.simulated, fresh.simulated);
    }
  }
}

}  // namespace
}  // namespace frazil
