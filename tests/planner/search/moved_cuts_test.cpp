// Tests that a search moves the cuts of its plans until no boundary does better.

#include "planner/search/moved_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "planner/actions/validate_plan.h"
#include "planner/search/search.h"
#include "tests/planner/support/search_cases.h"

namespace frazil {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

// Returns the plan with the boundary behind a stage moved in all pipelines that are cut like the
// first.
std::optional<Plan> moved(Plan plan, std::size_t stage, int by) {
  const std::vector<Stage> like = plan.pipelines.front().stages;
  for (Pipeline& pipeline : plan.pipelines) {
    bool alike = pipeline.stages.size() == like.size();
    for (std::size_t s = 0; alike && s < like.size(); ++s) {
      alike = pipeline.stages[s].layers == like[s].layers;
    }
    if (!alike) continue;
    pipeline.stages[stage].layers[0].last.value += by;
    pipeline.stages[stage + 1].layers[0].first.value += by;
    for (const Stage& one : pipeline.stages) {
      if (one.layers[0].last < one.layers[0].first) return std::nullopt;
    }
  }
  return plan;
}

TEST(MovedCuts, AreNeverWorseAndNoBoundaryOfTheBestDoesBetter) {
  int faster = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    const auto [profile, cluster, options] = draw_search_question(seed);
    Ranking ranking = search_plans({profile, cluster}, options);
    if (ranking.best() == nullptr) continue;
    const Ranking before = ranking;
    faster += move_cuts(ranking, {profile, cluster}, options, {.actions = kUnlimited}).faster;
    ASSERT_NE(ranking.best(), nullptr);
    for (std::size_t c = 0; c < ranking.candidates.size(); ++c) {
      ASSERT_LE(ranking.candidates[c].makespan, before.candidates[c].makespan);
    }
    const Candidate& best = ranking.candidates.front();
    const StepOptions step{.clip = options.clip, .overlap = options.overlap};
    ASSERT_EQ(judge_plan(best.plan, {profile, cluster}, step).makespan, best.makespan);
    validate(best.plan, {profile, cluster}, "moved");
    for (std::size_t s = 0; s + 1 < best.plan.pipelines.front().stages.size(); ++s) {
      for (const int by : {-1, 1}) {
        const std::optional<Plan> other = moved(best.plan, s, by);
        if (!other) continue;
        const Candidate judged = judge_plan(*other, {profile, cluster}, step);
        EXPECT_TRUE(judged.infeasible || judged.makespan >= best.makespan);
      }
    }
  }
  EXPECT_GT(faster, 10);
}

TEST(MovedCuts, StayWhereNothingMayBeSimulated) {
  const auto [profile, cluster, options] = draw_search_question(3);
  Ranking ranking = search_plans({profile, cluster}, options);
  ASSERT_NE(ranking.best(), nullptr);
  ASSERT_GT(ranking.best()->plan.pipelines.front().stages.size(), 1U) << "there is a cut";
  const std::vector<Candidate> before = ranking.candidates;
  EXPECT_EQ(move_cuts(ranking, {profile, cluster}, options, {.actions = 0}).tried, 0);
  ASSERT_EQ(ranking.candidates.size(), before.size());
  for (std::size_t c = 0; c < before.size(); ++c) {
    EXPECT_EQ(ranking.candidates[c].plan, before[c].plan);
  }
}

}  // namespace
}  // namespace frazil
