#include <gtest/gtest.h>

#include "planner/actions/validate_plan.h"
#include "planner/named/pipe_bd.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/reproduce/pipe_bd_results.h"
#include "planner/reproduce/pipe_bd_verdicts.h"
#include "planner/reproduce/pipe_bd_workloads.h"
#include "planner/reproduce/repeat_steps.h"
#include "profiles/json.h"
#include "sim/static_engine.h"
#include "tests/support/golden.h"
#include "tests/support/program_folder.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

const std::vector<int> kOneEach = {1, 1, 1, 1};

// The closed forms of a deterministic pipeline. A barrier exposes the relay's ramp in each step,
//   max over s of (load + teachers up to s + students of s),
// and without a barrier the longest stage is the period (Pipe-BD, sections on TR and DPU).
struct ClosedForms {
  Duration with_barrier{0};
  Duration decoupled{0};
};

ClosedForms find_closed_forms(const BlockwiseTimes& times, const std::vector<int>& cuts) {
  ClosedForms forms;
  Duration ramp = times.load.back();
  for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
    Duration own = s == 0 ? times.load.back() : Duration{0};
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

// Data parallelism trains S_i behind T_0..T_i on all devices: load + teachers + student of a
// quarter.
TEST(RepeatedSteps, HaveTheClosedFormOfOneStudentOnAllDevices) {
  const BlockwiseTimes times = make_imagenet_times();
  for (int block = 0; block < times.blocks(); ++block) {
    Duration expected = times.load.front();
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
  // The planner's measurements of the model equal the published ones, besides loading in block 0.
  const HybridCosts measured = measure_hybrid({workload.model, workload.cluster},
                                              FreezeMask::all_active(kPublishedBlocks), 240);
  const HybridCosts published = make_published_costs();
  for (std::size_t g = 0; g < 4; ++g) {
    const Duration load = times.load[3 - g];
    for (std::size_t b = 0; b < kPublishedBlocks; ++b) {
      EXPECT_EQ(measured.step[g][b], published.step[g][b] + (b == 0 ? load : Duration{0}));
    }
  }
}

// A chart of published speed-ups in thousandths, and steps of so many ns.
SpeedupResult make_chart(std::array<int, 5> published, std::array<int, 5> steps) {
  SpeedupResult result{{"T", "D", published}, {}};
  for (std::size_t m = 0; m < steps.size(); ++m) {
    if (steps[m] > 0) result.steps[m] = StepTimes{Duration{steps[m]}, Duration{steps[m]}};
  }
  return result;
}

TEST(PipeBdVerdicts, TellWrongSignsAndOrdersFromErrors) {
  using enum SpeedupVerdict;
  // Speed-ups of 1, 2 (published 0.5), 2.5 (2.4), 4 (3.2) and none.
  const SpeedupResult sign = make_chart({1000, 500, 2400, 3200, 4000}, {1000, 500, 400, 250, 0});
  EXPECT_EQ(judge_speedups(sign),
            (std::vector{kBaseline, kWrongSign, kClose, kFar, kNotSimulated}));
  ASSERT_EQ(explain_wrong_speedups(sign).size(), 1U);
  EXPECT_TRUE(explain_wrong_speedups(sign).front().starts_with(
      "LS for T on D is a speed-up (2.000) where a slow-down (0.500) was published: "))
      << explain_wrong_speedups(sign).front();
  // TR+DPU was published as faster than TR; the last two are published as equal.
  const SpeedupResult order =
      make_chart({1000, 2000, 2400, 3000, 3000}, {1000, 500, 350, 400, 390});
  EXPECT_EQ(judge_speedups(order),
            (std::vector{kBaseline, kClose, kWrongOrder, kWrongOrder, kWrongOrder}));
  EXPECT_EQ(explain_wrong_speedups(order).size(), 2U);
  const SpeedupResult right =
      make_chart({1000, 2000, 2400, 3000, 3000}, {1000, 500, 400, 330, 340});
  EXPECT_TRUE(explain_wrong_speedups(right).empty());
}

TEST(PipeBdVerdicts, FindTheSignOfLsOnImageNetWrong) {
  const PipeBdResults results = simulate_pipe_bd();
  EXPECT_EQ(judge_speedups(results.speedups[1])[1], SpeedupVerdict::kWrongSign);
  EXPECT_TRUE(explain_wrong_speedups(results.speedups[0]).empty());
}

TEST(ReproducePipeBd, HoldsWhatIsPublished) {
  const PipeBdResults results = simulate_pipe_bd();
  EXPECT_TRUE(results.schedules_are_exact);
  const auto& imagenet = results.speedups[1].steps;
  EXPECT_GT(imagenet[2]->varied, imagenet[3]->varied);
  EXPECT_GT(imagenet[3]->varied, imagenet[4]->varied);
  EXPECT_TRUE(results.idle_is_within_tenth);
  EXPECT_TRUE(results.varying_is_published);
  // The parts of a rank's time go in and come out unchanged.
  for (const EpochResult& rank : results.ranks) {
    EXPECT_EQ(rank.simulated.load, rank.published.load);
    EXPECT_EQ(rank.simulated.teacher, rank.published.teacher);
    EXPECT_EQ(rank.simulated.student, rank.published.student);
  }
}

TEST(ReproducePipeBd, PrintsTheSameTableEachTime) {
  const ProgramFolder folder("reproduce-pipe-bd");
  const Outcome outcome = folder.run("reproduce", "pipe-bd");
  EXPECT_EQ(outcome.code, 1) << "the sign of LS on ImageNet is not as published";
  EXPECT_TRUE(matches_golden("planner/reproduce_pipe_bd.txt", outcome.out));
}

TEST(ReproducePipeBd, AnswersInJson) {
  const ProgramFolder folder("reproduce-pipe-bd-json");
  const Outcome outcome = folder.run("reproduce", "pipe-bd --json");
  ASSERT_EQ(outcome.code, 1) << outcome.err;
  JsonFields answer(parse_json(outcome.out, "answer"));
  EXPECT_EQ(answer.required("wrong_speedups").items().size(), 1U);
  EXPECT_EQ(answer.required("speedups").items().size(), 20U);
  EXPECT_EQ(answer.required("epoch").items().size(), 5U);
  EXPECT_EQ(answer.required("schedules").items().size(), 2U);
  EXPECT_EQ(folder.run("reproduce", "pipe-bd --data .").code, 2);
}

}  // namespace
}  // namespace frazil
