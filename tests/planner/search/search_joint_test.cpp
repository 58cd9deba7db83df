// Compares the search that bounds and leaves out with the one that simulates every whole plan.

#include <gtest/gtest.h>

#include "planner/plan/plan_json.h"
#include "planner/search/best_first.h"
#include "planner/search/search.h"
#include "tests/planner/support/search_cases.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

// A source of questions under any mask, or with a frozen prefix that plans may cache.
struct DrawnQuestions {
  const char* name;
  SearchQuestion (*draw)(std::uint64_t seed);
  int caching;  // best plans that cache the prefix, at least
};

void PrintTo(const DrawnQuestions& questions, std::ostream* out) { *out << questions.name; }

class JointSearchOver : public testing::TestWithParam<DrawnQuestions> {};

INSTANTIATE_TEST_SUITE_P(, JointSearchOver,
                         testing::Values(DrawnQuestions{"AnyMask", draw_search_question, 0},
                                         DrawnQuestions{"CachedPrefix", draw_cached_question, 100},
                                         DrawnQuestions{"LittleMemory", draw_tight_question, 0},
                                         DrawnQuestions{"Processes", draw_question_over_processes,
                                                        0}),
                         [](const auto& info) { return info.param.name; });

TEST_P(JointSearchOver, FindsTheBestOfAllPlansAndTheSameRunnersUp) {
  int feasible = 0;
  int caching = 0;
  std::size_t simulated = 0;
  std::size_t all = 0;
  for (std::uint64_t seed = 1; seed <= 320; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = GetParam().draw(seed);
    question.options.keep = 3;
    const Ranking found = search_plans({question.profile, question.cluster}, question.options);
    question.options.keep = 0;
    const Ranking oracle = search_plans({question.profile, question.cluster}, question.options);
    ASSERT_EQ(found.best() == nullptr, oracle.best() == nullptr);
    all += oracle.candidates.size();
    simulated += static_cast<std::size_t>(found.simulated);
    if (found.best() == nullptr) continue;
    ++feasible;
    caching += found.best()->plan.cache_frozen_prefix ? 1 : 0;
    std::int64_t candidates = 0;
    for (std::size_t c = 0; c < found.candidates.size(); ++c) {
      const Candidate& own = found.candidates[c];
      const Candidate& other = oracle.candidates[c];
      ASSERT_EQ(own.makespan, other.makespan)
          << summarize(own.plan) << " " << summarize(other.plan);
      ASSERT_EQ(own.plan, other.plan) << summarize(own.plan) << " " << summarize(other.plan);
      ASSERT_EQ(own.extrapolated, other.extrapolated);
      ASSERT_EQ(own.memory.size(), other.memory.size());
      for (std::size_t d = 0; d < own.memory.size(); ++d) {
        ASSERT_EQ(own.memory[d].total, other.memory[d].total);
        ASSERT_EQ(own.memory[d].held, other.memory[d].held);
      }
    }
    candidates += static_cast<std::int64_t>(found.candidates.size());
    for (const RejectedShapes& rejected : found.rejected) {
      candidates += rejected.candidates;
      if (rejected.rejection.why != Rejection::Why::kBound) continue;
      EXPECT_GE(rejected.rejection.time, rejected.rejection.against);
      EXPECT_FALSE(rejected.rejection.bound.empty());
    }
    // Nothing is left out without a reason. The count may exceed the oracle's, which leaves out
    // arrangements that repeat the same devices.
    EXPECT_GE(candidates, static_cast<std::int64_t>(oracle.candidates.size()));
  }
  EXPECT_GT(feasible, 200);
  EXPECT_GE(caching, GetParam().caching);
  EXPECT_LT(simulated, all);
}

TEST(JointSearch, ThatEndsEarlySaysHowMuchBetterTheRestCouldBe) {
  int early = 0;
  int better = 0;
  for (std::uint64_t seed = 4000; seed < 4120; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_search_question(seed);
    question.options.keep = 1;
    const Ranking whole = search_plans({question.profile, question.cluster}, question.options);
    question.options.effort = 1 + static_cast<std::int64_t>(seed % 7);
    const Ranking found = search_plans({question.profile, question.cluster}, question.options);
    EXPECT_FALSE(whole.left.has_value());
    ASSERT_EQ(found.best() == nullptr, whole.best() == nullptr);
    if (found.best() == nullptr) continue;
    EXPECT_GE(found.best()->makespan, whole.best()->makespan);
    if (!found.left) {
      EXPECT_EQ(found.best()->plan, whole.best()->plan);
      continue;
    }
    ++early;
    EXPECT_GT(found.left->candidates, 0);
    EXPECT_LE(std::min(found.left->at_least, found.best()->makespan), whole.best()->makespan);
    better += whole.best()->makespan < found.best()->makespan ? 1 : 0;
  }
  EXPECT_GT(early, 30);
  EXPECT_GT(better, 3);
}

TEST_P(JointSearchOver, NoBoundIsAboveTheTimeOfItsPlan) {
  int two_phases = 0;
  int messages = 0;
  int weights_last = 0;  // of 2bp, bounded as a fused 1f1b
  // Schedules are drawn from the menu: the longer the menu, the later 2bp is met.
  for (std::uint64_t seed = 1000; seed < 1150 || (weights_last == 0 && seed < 1600); ++seed) {
    SCOPED_TRACE(seed);
    const SearchQuestion question = GetParam().draw(seed);
    OrderTable orders;
    Evaluator evaluator({question.profile, question.cluster}, question.options, orders);
    for (const Shape& shape : list_shapes(evaluator)) {
      const Verdict verdict = evaluator.judge(shape);
      const auto bound = evaluator.bound(shape);
      if (std::holds_alternative<Rejection>(bound)) {
        EXPECT_TRUE(verdict.rejection.has_value());
        continue;
      }
      if (verdict.rejection) continue;
      const ChainSums& sums = evaluator.sums_of(shape.cell.micro_batch_size);
      const ChainSums& own = evaluator.sums_of(shape.cell.micro_batch_size, shape.variant.cached);
      const WorkBounds& work = evaluator.work_bounds();
      Candidate candidate = evaluator.make_candidate(shape, verdict);
      evaluator.add_bounds(candidate);
      const std::string name = summarize(candidate.plan);
      const NamedBound& by_cuts = std::get<NamedBound>(bound);
      EXPECT_LE(by_cuts.time, verdict.makespan) << name;
      two_phases += by_cuts.name == "two-phases" ? 1 : 0;
      messages += by_cuts.name == "messages" ? 1 : 0;
      weights_last += shape.variant.schedule == ScheduleKind::kTwoBp &&
                              by_cuts.name == "device-warm-up-cool-down"
                          ? 1
                          : 0;
      EXPECT_LE(work.bound(sums, shape.cell).time, verdict.makespan) << name;
      EXPECT_LE(work.bound(own, shape.cell, class_of(shape.variant)).time, verdict.makespan)
          << name;
      EXPECT_LE(candidate.bounds.makespan.time, verdict.makespan) << name;
      if (shape.cell.longer > 0) {
        ShapeCell shorter = shape.cell;
        shorter.longer = 0;
        EXPECT_LE(work.bound_longer(sums, shorter).time, verdict.makespan) << name;
      }
    }
  }
  EXPECT_GT(two_phases, 20);
  EXPECT_GT(messages, 0);
  EXPECT_GT(weights_last, 0);
}

TEST_P(JointSearchOver, GroupsSimulatedOnceGiveTheWholePlansTimesAndPeaks) {
  int compared = 0;
  int reducing = 0;  // devices that hold most while they reduce
  for (std::uint64_t seed = 2000; seed < 2260; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = GetParam().draw(seed);
    question.options.overlap = std::nullopt;
    OrderTable orders;
    Evaluator evaluator({question.profile, question.cluster}, question.options, orders);
    for (const Shape& shape : list_shapes(evaluator)) {
      const Verdict brief = evaluator.judge(shape);
      const Candidate whole = evaluator.judge_whole(shape);
      const std::string name = summarize(whole.plan);
      ASSERT_EQ(brief.rejection.has_value(), whole.infeasible.has_value()) << name;
      if (whole.memory.empty()) {
        EXPECT_EQ(brief.rejection->sentence, whole.infeasible->reason);
        continue;
      }
      ++compared;
      EXPECT_EQ(brief.makespan, whole.makespan) << name;
      EXPECT_EQ(brief.extrapolated, whole.extrapolated) << name;
      for (std::size_t d = 0; d < whole.memory.size(); ++d) {
        EXPECT_EQ(brief.memory[d].total, whole.memory[d].total) << name;
        EXPECT_EQ(brief.memory[d].held, whole.memory[d].held) << name;
        const auto held = [&](MemoryKind kind) {
          return whole.memory[d].held[static_cast<std::size_t>(kind)].count;
        };
        if (held(MemoryKind::kStash) == 0 && held(MemoryKind::kGradients) > 0) ++reducing;
      }
    }
  }
  EXPECT_GT(compared, 5000);
  EXPECT_GT(reducing, 100);
}

// A search with a gap may leave plans that are better by no more than the gap.
TEST_P(JointSearchOver, EndsWithinTheGapThatIsAskedFor) {
  int early = 0;
  int simulated = 0;
  int simulated_to_the_proof = 0;
  for (std::uint64_t seed = 8000; seed < 8150; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = GetParam().draw(seed);
    question.options.keep = 2;
    const Ranking proven = search_plans({question.profile, question.cluster}, question.options);
    question.options.gap_ppm = 50'000;
    const Ranking found = search_plans({question.profile, question.cluster}, question.options);
    ASSERT_EQ(found.best() == nullptr, proven.best() == nullptr);
    if (found.best() == nullptr) continue;
    EXPECT_FALSE(proven.left.has_value());
    const Duration least = proven.best()->makespan;
    EXPECT_LE(found.best()->makespan.count() * 100, least.count() * 105);
    if (!found.left) {
      EXPECT_EQ(found.best()->makespan, least);
      continue;
    }
    ++early;
    EXPECT_LE(std::min(found.left->at_least, found.best()->makespan), least);
    EXPECT_LE(found.best()->makespan.count() * 100, found.left->at_least.count() * 105);
    simulated += found.simulated;
    simulated_to_the_proof += proven.simulated;
  }
  EXPECT_GT(early, 10);
  EXPECT_LT(simulated, simulated_to_the_proof);
}

TEST(JointSearch, IsNeverWorseWithMoreDevices) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_search_question(seed + 3000);
    SearchOptions options = question.options;
    options.batch_size = 24;
    options.micro_batch_sizes = {1, 2, 4};
    options.schedules = {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                         ScheduleKind::kZbH1, ScheduleKind::kInterleaved};
    options.joint = true;
    options.overlap = std::nullopt;
    Duration before = Duration::max();
    for (int devices = 1; devices <= 64; ++devices) {
      const Cluster cluster =
          make_uniform_cluster(devices, Bytes{10'000'000}, question.cluster.default_link);
      const Ranking ranking = search_plans({question.profile, cluster}, options);
      ASSERT_NE(ranking.best(), nullptr);
      EXPECT_LE(ranking.best()->makespan, before) << devices << " devices";
      before = ranking.best()->makespan;
    }
  }
}

TEST(JointSearch, GivesTheSamePlanOnEveryRun) {
  for (const std::uint64_t seed : {7U, 8U, 9U}) {
    const SearchQuestion question = draw_search_question(seed);
    const auto answer = [&] {
      const Ranking ranking = search_plans({question.profile, question.cluster}, question.options);
      return ranking.best() == nullptr ? std::string() : to_json(ranking.best()->plan);
    };
    EXPECT_EQ(answer(), answer());
  }
}

TEST(JointSearch, TakesASlowDeviceOnlyWhereItHelpsAndPutsItInItsPlace) {
  // One device of three is a hundred times slower, so the other two do all the work.
  const ModelProfile profile = make_chain(6, microseconds(10), microseconds(10), microseconds(10));
  Cluster cluster = make_uniform_cluster(3, Bytes{10'000'000}, {});
  cluster.devices[0].time_ppm = 100'000'000;
  SearchOptions options;
  options.batch_size = 8;
  options.micro_batch_sizes = {1};
  options.mask = FreezeMask::all_active(6);
  options.joint = true;
  const Ranking ranking = search_plans({profile, cluster}, options);
  ASSERT_NE(ranking.best(), nullptr);
  for (const Pipeline& pipeline : ranking.best()->plan.pipelines) {
    for (const Stage& stage : pipeline.stages) EXPECT_NE(stage.devices.front(), DeviceId{0});
  }
}

TEST(JointSearch, RecomputesWhereNothingElseFits) {
  const ModelProfile profile = make_chain(4, microseconds(10), microseconds(10), microseconds(10));
  SearchOptions options;
  options.batch_size = 4;
  options.micro_batch_sizes = {1};
  options.schedules = {ScheduleKind::kGpipe};
  options.mask = FreezeMask::all_active(4);
  // State and three gradient sets take 24,000 bytes, the stash of a micro-batch 400, its input 10.
  const Cluster cluster = make_uniform_cluster(1, Bytes{25'000}, {});
  EXPECT_EQ(search_plans({profile, cluster}, options).best(), nullptr);
  options.recompute = true;
  const Ranking ranking = search_plans({profile, cluster}, options);
  ASSERT_NE(ranking.best(), nullptr);
  EXPECT_EQ(ranking.best()->plan.pipelines.front().stages.front().memory, MemoryPolicy::kRecompute);
  EXPECT_EQ(ranking.best()->memory.front().total, Bytes{24'000 + 4 * 10 + 390});
}

}  // namespace
}  // namespace frazil
