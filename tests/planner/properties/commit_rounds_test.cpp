// Tests steps over processes, whose updates wait for a commit round.

#include <gtest/gtest.h>

#include "planner/interop/chakra.h"
#include "planner/plan/commit_round.h"
#include "planner/prediction/bounds.h"
#include "planner/prediction/contended_step.h"
#include "planner/prediction/idle_time.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/error.h"
#include "profiles/processes.h"
#include "sim/cost_model.h"
#include "tests/planner/support/search_cases.h"
#include "tests/planner/support/shared_plans.h"

namespace frazil {
namespace {

TEST(CommitRounds, StandBetweenTheLastReductionAndTheFirstUpdate) {
  const ModelProfile profile = make_shared_model(2);
  const Plan plan = make_shared_plan({1, 1}, 1, 2, {});
  Cluster cluster = make_shared_cluster(2, Duration{0});
  const auto spans = [&](int device) {
    return list_spans(simulate_plan(plan, {profile, cluster}).timeline, device);
  };
  EXPECT_EQ(spans(0), "0F0 0-10 0F1 10-20 0B0 40-50 0B1 70-80 0U 80-84");
  EXPECT_EQ(spans(1), "1F0 10-20 1B0 20-40 1F1 40-50 1B1 50-70 1U 70-74");
  deal_processes(cluster, 2, "--procs");
  cluster.commit_round = Duration{16};
  EXPECT_EQ(spans(0), "0F0 0-10 0F1 10-20 0B0 40-50 0B1 70-80 BARRIER 80-96 0U 96-100");
  EXPECT_EQ(spans(1), "1F0 10-20 1B0 20-40 1F1 40-50 1B1 50-70 1U 96-100");
  EXPECT_EQ(draw(simulate_plan(plan, {profile, cluster}).timeline, Duration{4}),
            "d0 |00111     aa     bbb    U|\n"
            "d1 |  000aaaaa11bbbbb       U|\n");
}

TEST(CommitRounds, WaitForTheReductionOfReplicas) {
  const ModelProfile profile = make_shared_model(1);
  const Plan plan = make_shared_plan({2}, 1, 2, {});
  Cluster cluster = make_shared_cluster(2);
  deal_processes(cluster, 2, "--procs");
  cluster.commit_round = Duration{30};
  const Timeline timeline = simulate_plan(plan, {profile, cluster}).timeline;
  EXPECT_EQ(list_spans(timeline, 0),
            "0F0 0-10 0B0 10-20 0REDUCE_GRAD 20-22 BARRIER 22-52 0U 52-56");
  EXPECT_EQ(list_spans(timeline, 1), "0F1 0-10 0B1 10-20 0REDUCE_GRAD 20-22 0U 52-56");
}

// The oracle is the barrier of clipping: the round of a step is the time by which all updates come
// later than those of the clipped step on a cluster whose rounds take no time.
TEST(CommitRounds, MoveTheUpdatesOfAClippedStepAndNothingElse) {
  int commits = 0;
  int alone = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_question_over_processes(seed);
    Cluster free = question.cluster;
    free.commit_round = Duration{0};
    OrderTable orders;
    Evaluator evaluator({question.profile, question.cluster}, question.options, orders);
    const std::vector<Shape> shapes = list_shapes(evaluator);
    for (std::size_t s = seed % 7; s < shapes.size(); s += 7) {
      const Verdict verdict = evaluator.judge(shapes[s]);
      if (verdict.rejection && verdict.rejection->why == Rejection::Why::kRefused) continue;
      const Plan plan = evaluator.make_candidate(shapes[s], verdict).plan;
      SCOPED_TRACE(summarize(plan));
      const StepOptions options{.clip = question.options.clip, .overlap = question.options.overlap};
      const StepOptions clipped{.clip = true, .overlap = question.options.overlap};
      const PlanSimulation own = simulate_plan(plan, {question.profile, question.cluster}, options);
      const auto round = find_commit_round(plan, question.cluster);
      alone += round ? 0 : 1;
      const PlanSimulation oracle =
          simulate_plan(plan, {question.profile, free}, round ? clipped : options);
      const Duration later = round.value_or(Duration{0});
      const auto spans_of = [](const Timeline& timeline, bool updates) {
        std::vector<Span> spans;
        for (const Span& span : timeline.spans) {
          const bool is_update = span.action.kind == ActionKind::kUpdate;
          if (is_update == updates && span.action.kind != ActionKind::kBarrier)
            spans.push_back(span);
        }
        return spans;
      };
      EXPECT_EQ(spans_of(own.timeline, false), spans_of(oracle.timeline, false));
      std::vector<Span> moved = spans_of(oracle.timeline, true);
      for (Span& span : moved) {
        span.start += later;
        span.end += later;
      }
      EXPECT_EQ(spans_of(own.timeline, true), moved);
      EXPECT_EQ(own.makespan, oracle.makespan + (moved.empty() ? Duration{0} : later));
      for (std::size_t d = 0; d < own.memory.size(); ++d) {
        EXPECT_EQ(own.memory[d].held, oracle.memory[d].held);
      }
      EXPECT_LE(find_bounds(plan, {question.profile, question.cluster}).makespan.time,
                own.makespan);
      commits += later > Duration{0} && !moved.empty() ? 1 : 0;
    }
  }
  EXPECT_GT(commits, 500);
  EXPECT_GT(alone, 500);
}

TEST(CommitRounds, AreExplainedExportedAndContendedLikeAnyWait) {
  ModelProfile profile = make_shared_model(4);
  Cluster cluster = make_shared_cluster(4);
  deal_processes(cluster, 2, "--procs");
  const Plan plan = make_shared_plan({2, 2}, 2, 6, {});
  const Setting setting{profile, cluster};
  const SimulatedStep step = simulate_step(plan, setting);
  const Prices prices = price_all(step.lowered.graph, setting);
  for (const DeviceTime& time : split_makespan(step.lowered, step.simulation, prices.of_work, 4)) {
    EXPECT_EQ(total(time), step.simulation.makespan);
    EXPECT_GE(time.update, kDefaultCommitRound);
  }
  const SimulatedStep without = simulate_step(plan, setting, {.commit_round = false});
  EXPECT_EQ(to_chakra(without, plan, setting).files.size(), 4U);
  const ContendedStep contended = simulate_contended(step.lowered, setting, {.share_links = true});
  EXPECT_EQ(contended.makespan, step.simulation.makespan);
}

TEST(CommitRounds, LeaveAPlanWithWeightVersionsAsItIs) {
  const ModelProfile profile = make_shared_model(2);
  Plan plan = make_shared_plan({1, 1}, 1, 4, {.kind = ScheduleKind::kPipeDream});
  plan.versions = WeightVersions::kStash;
  Cluster cluster = make_shared_cluster(2);
  const Timeline before = simulate_plan(plan, {profile, cluster}).timeline;
  deal_processes(cluster, 2, "--procs");
  EXPECT_EQ(simulate_plan(plan, {profile, cluster}).timeline.spans, before.spans);
  EXPECT_TRUE(ends_with_a_process(plan, cluster));
}

}  // namespace
}  // namespace frazil
