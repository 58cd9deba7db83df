#include <gtest/gtest.h>

#include "planner/actions/validate_plan.h"
#include "planner/partition/pipe_bd.h"
#include "planner/prediction/repeat_steps.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/reproduce/pipe_bd/pipe_bd_results.h"
#include "planner/reproduce/pipe_bd/pipe_bd_verdicts.h"
#include "planner/reproduce/pipe_bd/pipe_bd_workloads.h"
#include "profiles/json.h"
#include "sim/static_engine.h"
#include "tests/support/golden.h"
#include "tests/support/program_folder.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

const std::vector<int> kOneEach = {1, 1, 1, 1};

// The closed forms of a deterministic pipeline. A barrier exposes the relay's ramp in each step,
//   max over s of (teachers up to s + students of s),
// and without a barrier the longest stage is the period (Pipe-BD, sections on TR and DPU).
struct ClosedForms {
  Duration with_barrier{0};
  Duration decoupled{0};
};

ClosedForms find_closed_forms(const BlockwiseTimes& times, const std::vector<int>& cuts) {
  ClosedForms forms;
  Duration ramp{0};
  for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
    Duration own{0};
    Duration students{0};
    for (int b = cuts[s]; b < cuts[s + 1]; ++b) {
      const auto block = static_cast<std::size_t>(b);
      ramp += times.teacher.back()[block];
      own += times.teacher.back()[block] + times.student.back()[block];
      students += times.student.back()[block];
    }
    forms.with_barrier = std::max(forms.with_barrier, ramp + students);
    forms.decoupled = std::max(forms.decoupled, own);
  }
  return forms;
}

TEST(RepeatedSteps, HaveTheClosedFormsOfRelayingWithAndWithoutBarrier) {
  for (const BlockwiseTimes& times : {make_imagenet_times(), make_cifar_times()}) {
    const auto visit = [&](const std::vector<int>& groups, const std::vector<int>& cuts) {
      if (groups != kOneEach) return;
      const Workload workload = make_relayed(times, {groups, cuts, Duration{0}});
      const auto period = [&](bool barrier) {
        return find_period(workload.plan, {workload.model, workload.cluster},
                           {.steps = 20, .barrier = barrier});
      };
      const ClosedForms expected = find_closed_forms(times, cuts);
      EXPECT_EQ(period(true), expected.with_barrier);
      EXPECT_EQ(period(false), expected.decoupled);
    };
    visit_hybrid_plans(4, times.blocks(), visit);
  }
}

// Data parallelism trains S_i behind T_0..T_i on all devices: teachers + student of a quarter.
TEST(RepeatedSteps, HaveTheClosedFormOfOneStudentOnAllDevices) {
  const BlockwiseTimes times = make_imagenet_times();
  for (int block = 0; block < times.blocks(); ++block) {
    Duration expected{0};
    for (int b = 0; b <= block; ++b) expected += times.teacher.front()[static_cast<std::size_t>(b)];
    expected += times.student.front()[static_cast<std::size_t>(block)];
    const Workload workload = make_single_student(times, block, 4);
    EXPECT_EQ(find_period(workload.plan, {workload.model, workload.cluster}, {}), expected);
  }
}

TEST(RepeatedSteps, OfOneAreTheStepAndOfManyTheirNumber) {
  const Workload workload = make_relayed(make_imagenet_times(), {{2, 1, 1}, {0, 1, 3, 6}, {}});
  const SimulatedStep step = simulate_step(workload.plan, {workload.model, workload.cluster});
  const TaskGraph once = repeat_steps(step.lowered.graph, 1);
  EXPECT_EQ(simulate(once, {workload.model, workload.cluster}).makespan, step.simulation.makespan);
  const TaskGraph thrice = repeat_steps(step.lowered.graph, 3);
  EXPECT_EQ(thrice.size(), 3 * once.size());
  EXPECT_EQ(thrice.dependencies().size(), 3 * once.dependencies().size());
  EXPECT_LT(simulate(thrice, {workload.model, workload.cluster}).makespan,
            3 * step.simulation.makespan);
}

TEST(PipeBdWorkloads, AreValidAndKeepThePublishedTimes) {
  const BlockwiseTimes times = make_imagenet_times();
  EXPECT_EQ(times.batches, (std::vector<int>{60, 80, 120, 240}));
  for (std::size_t at = 0; at < times.batches.size(); ++at) {
    const BlockMeans& means = kBlockMeans[times.batches.size() - 1 - at];
    for (std::size_t b = 0; b < kPublishedBlocks; ++b) {
      EXPECT_EQ(times.teacher[at][b] + times.student[at][b], microseconds(100) * means.tenths[b]);
    }
  }
  const Workload workload = make_relayed(times, {{3, 1}, {0, 3, 6}, {}});
  EXPECT_NO_THROW(validate(workload.model, "model"));
  EXPECT_NO_THROW(validate(workload.plan, {workload.model, workload.cluster}, "plan"));
  // The planner's measurements of the model equal the published ones.
  const HybridCosts measured = measure_hybrid({workload.model, workload.cluster},
                                              FreezeMask::all_active(kPublishedBlocks), 240);
  const HybridCosts published = make_published_costs();
  for (std::size_t g = 0; g < 4; ++g) {
    EXPECT_EQ(measured.step[g], published.step[g]);
  }
}

TEST(PipeBdWorkloads, GiveDataParallelismOnCifarWhatTheBreakdownSays) {
  const BlockwiseTimes times = make_cifar_times();
  Duration teachers{0};
  Duration students{0};
  for (std::size_t block = 0; block < kPublishedBlocks; ++block) {
    for (std::size_t b = 0; b <= block; ++b) teachers += times.teacher[0][b];
    students += times.student[0][block];
  }
  // An epoch has 100 steps, and its parts are in hundredths of a second.
  EXPECT_NEAR(to_ms(teachers), kDataParallelEpoch.teacher / 10.0, 1e-4);
  EXPECT_NEAR(to_ms(students), kDataParallelEpoch.student / 10.0, 1e-4);
  // The hybrid distribution chooses the pipeline of the breakdown, as AHD did: both speed-ups that
  // were published are 3.078.
  const auto ranked = rank_hybrid_plans(find_hybrid_costs(times, Bytes{kLargestQuantity}));
  EXPECT_EQ(ranked.front().groups, make_cifar_pipeline().groups);
  EXPECT_EQ(ranked.front().cuts, make_cifar_pipeline().cuts);
}

TEST(PipeBdSpeedups, AreWithinTheirBarsOrTellTheirOpenInputButForLsOnCifar) {
  using enum SpeedupVerdict;
  const std::vector<SpeedupResult> results = simulate_speedups();
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(judge_speedups(results[0]),
            (std::vector{kBaseline, kOffBar, kWithinBar, kWithinBar, kWithinBar}));
  EXPECT_EQ(judge_speedups(results[1]),
            (std::vector{kBaseline, kOpenInput, kWithinBar, kFitted, kWithinBar}));
  for (const std::size_t own : {2U, 3U}) {
    EXPECT_EQ(judge_speedups(results[own]),
              (std::vector{kBaseline, kOwnWorkload, kOwnWorkload, kOwnWorkload, kOwnWorkload}));
    // The pipelines gain in the published order.
    EXPECT_GT(find_speedup(results[own], 2), 1);
    EXPECT_GT(find_speedup(results[own], 3), find_speedup(results[own], 2));
    EXPECT_GT(find_speedup(results[own], 4), find_speedup(results[own], 3));
  }
  // The fitted constant gives what it was fitted on.
  EXPECT_NEAR(find_speedup(results[1], 3), 3.140, 5e-4);
  for (const SpeedupResult& result : results) {
    EXPECT_EQ(explain_misses(result).size(), &result == &results[0] ? 1U : 0U);
    EXPECT_LE(result.own.step, result.times.back().plain) << "AHD's plan is one of those we try";
  }
}

TEST(ReproducePipeBd, PrintsTheSameTableEachTime) {
  const ProgramFolder folder("reproduce-pipe-bd");
  const Outcome outcome = folder.run("reproduce", "pipe-bd");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(matches_golden("planner/reproduce_pipe_bd.txt", outcome.out));
}

TEST(ReproducePipeBd, AnswersInJson) {
  const ProgramFolder folder("reproduce-pipe-bd-json");
  const Outcome outcome = folder.run("reproduce", "pipe-bd --json");
  ASSERT_EQ(outcome.code, 1) << outcome.err;
  JsonFields answer(parse_json(outcome.out, "answer"));
  EXPECT_EQ(answer.required("missed_speedups").items().size(), 1U);
  const auto rows = answer.required("speedups").items();
  ASSERT_EQ(rows.size(), 20U);
  for (const auto& row : rows) {
    JsonFields fields(row);
    EXPECT_GT(fields.required("simulated").real(0, 100), 0);
    EXPECT_FALSE(fields.required("verdict").text().empty());
  }
  EXPECT_EQ(answer.required("own_plans").items().size(), 4U);
  EXPECT_EQ(answer.required("epoch").items().size(), 5U);
  EXPECT_EQ(answer.required("schedules").items().size(), 2U);
}

TEST(PipeBdVerb, TakesNoData) {
  const ProgramFolder folder("reproduce-pipe-bd-data");
  EXPECT_EQ(folder.run("reproduce", "pipe-bd --data .").code, 2);
}

}  // namespace
}  // namespace frazil
