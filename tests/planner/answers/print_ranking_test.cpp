// Tests the remarks and columns that a table of plans shows beside its numbers.

#include "planner/answers/print_ranking.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "planner/answers/ranking_json.h"
#include "planner/plan/schedule_facts.h"
#include "planner/search/explain_plan.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

const ModelProfile& model() {
  static const ModelProfile profile =
      make_chain(4, microseconds(10), microseconds(10), microseconds(10));
  return profile;
}

const Cluster& cluster() {
  static const Cluster two = make_uniform_cluster(2, Bytes{1'000'000}, {microseconds{5}, {}});
  return two;
}

Plan two_stages(ScheduleKind kind, std::vector<DeviceId> devices) {
  Plan plan;
  plan.model_hash = model_hash(model());
  plan.batch_size = 4;
  plan.micro_batch_size = 1;
  plan.mask = FreezeMask::all_active(4);
  plan.pipelines = {make_pipeline(4, {LayerId{2}}, devices, {MicroBatchId{0}, MicroBatchId{3}})};
  plan.schedule = NamedSchedule{.kind = kind};
  return plan;
}

Candidate judged(const Plan& plan) { return judge_plan(plan, {model(), cluster()}, false); }

std::string table_of(std::vector<Candidate> candidates) {
  return print_ranking(Ranking{std::move(candidates), {}, {}, {}}, {model(), cluster()}, 10);
}

int count_lines(const std::string& text, const std::string& with) {
  int lines = 0;
  for (std::size_t at = text.find(with); at != std::string::npos; at = text.find(with, at + 1)) {
    ++lines;
  }
  return lines;
}

TEST(PrintRanking, PutsSchedulesThatComeToTheSameIntoOneRow) {
  const Candidate one = judged(two_stages(ScheduleKind::kGpipe, {DeviceId{0}, DeviceId{1}}));
  Candidate other = one;
  other.plan.schedule = NamedSchedule{.kind = ScheduleKind::kTwoBp};
  EXPECT_TRUE(differ_in_schedule_alone(one, other));
  const std::string table = table_of({one, other});
  EXPECT_EQ(count_lines(table, "4 of 1"), 1) << table;
  EXPECT_EQ(table.find("or 2bp\n") - table.find('\n', table.find("gpipe")) - 1,
            table.find("schedule"))
      << table;
  EXPECT_NE(table.find("\n2 plans fit on 2 devices"), std::string::npos) << table;

  Candidate fuller = other;
  fuller.memory[1].total += Bytes{1};
  EXPECT_FALSE(differ_in_schedule_alone(one, fuller));
  const std::string both = table_of({one, fuller});
  EXPECT_EQ(count_lines(both, "4 of 1"), 1) << both;
  EXPECT_NE(both.find("or 2bp ("), std::string::npos) << "with its own memory: " << both;
  Candidate slower = other;
  slower.makespan += Duration{1};
  EXPECT_FALSE(differ_in_schedule_alone(one, slower));
  Candidate elsewhere = other;
  std::swap(elsewhere.plan.pipelines[0].stages[0].devices,
            elsewhere.plan.pipelines[0].stages[1].devices);
  EXPECT_FALSE(differ_in_schedule_alone(one, elsewhere));
}

TEST(PrintRanking, TheRunnerUpIsAnotherPlanThanTheBest) {
  const Candidate one = judged(two_stages(ScheduleKind::kGpipe, {DeviceId{0}, DeviceId{1}}));
  Candidate other = one;
  other.plan.schedule = NamedSchedule{.kind = ScheduleKind::kTwoBp};
  Plan larger = one.plan;
  larger.micro_batch_size = 2;
  larger.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{1}}};
  const Candidate third = judged(larger);
  ASSERT_GT(third.makespan, one.makespan);
  SearchOptions options;
  options.mask = FreezeMask::all_active(4);
  const PlanExplanation explanation =
      explain_plan(Ranking{{one, other, third}, {}, {}, {}}, {model(), cluster()}, options);
  ASSERT_EQ(explanation.best.size(), 2U);
  EXPECT_EQ(explanation.best[1].summary, summarize(third.plan));
  EXPECT_EQ(
      explain_plan(Ranking{{one, other}, {}, {}, {}}, {model(), cluster()}, options).best.size(),
      1U);
}

// The blocks of a distillation are a layer of the teacher and one of the student: the first layers
// of its stages do not tell what these hold.
TEST(PrintRanking, TellsTheLayersOfStagesWithSeveralRanges) {
  const Plan cut = two_stages(ScheduleKind::kGpipe, {DeviceId{0}, DeviceId{1}});
  const auto answer = [](const Candidate& candidate) {
    const Ranking ranking{{candidate}, {}, {}, {}};
    return nlohmann::json::parse(ranking_json(ranking, {model(), cluster()}, 1))["feasible"][0];
  };
  Candidate candidate = judged(cut);
  EXPECT_NE(table_of({candidate}).find("  2\n"), std::string::npos) << table_of({candidate});
  EXPECT_EQ(answer(candidate)["cuts"], nlohmann::json::parse("[[2]]"));
  EXPECT_FALSE(answer(candidate).contains("layers"));

  std::vector<Stage>& stages = candidate.plan.pipelines[0].stages;
  stages[0].layers = {{LayerId{0}, LayerId{0}}, {LayerId{2}, LayerId{2}}};
  stages[1].layers = {{LayerId{1}, LayerId{1}}, {LayerId{3}, LayerId{3}}};
  EXPECT_NE(table_of({candidate}).find("  0-0+2-2 1-1+3-3\n"), std::string::npos)
      << table_of({candidate});
  EXPECT_EQ(answer(candidate)["layers"],
            nlohmann::json::parse("[[[[0, 0], [2, 2]], [[1, 1], [3, 3]]]]"));
  EXPECT_FALSE(answer(candidate).contains("cuts"));
}

TEST(PrintRanking, SaysWhereDevicesMayBeAheadOfEachOther) {
  Candidate candidate = judged(two_stages(ScheduleKind::kGpipe, {DeviceId{0}, DeviceId{1}}));
  EXPECT_EQ(count_lines(table_of({candidate}), "ahead of each other"), 0);
  candidate.plan.steps_ahead = 31;
  EXPECT_EQ(count_lines(table_of({candidate}), " devices up to 31 steps ahead of each other\n"), 1)
      << table_of({candidate});
}

TEST(PrintRanking, ListsDevicesWherePipelinesTakeThemInAnotherOrder) {
  const auto table = [](const Plan& plan) { return table_of({judged(plan)}); };
  const ScheduleKind kind = ScheduleKind::kGpipe;
  EXPECT_EQ(count_lines(table(two_stages(kind, {DeviceId{0}, DeviceId{1}})), " on device"), 0);
  const std::string turned = table(two_stages(kind, {DeviceId{1}, DeviceId{0}}));
  EXPECT_NE(turned.find(" on device1 device0\n"), std::string::npos) << turned;
  Plan both_ways = two_stages(ScheduleKind::kDualPipe, {DeviceId{0}, DeviceId{1}});
  both_ways.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{1}}};
  both_ways.pipelines.push_back(make_pipeline(4, {LayerId{2}}, {DeviceId{1}, DeviceId{0}},
                                              {MicroBatchId{2}, MicroBatchId{3}}));
  const std::string ways = table(both_ways);
  EXPECT_NE(ways.find("dualpipe"), std::string::npos) << ways;
  EXPECT_EQ(count_lines(ways, " on device"), 0) << ways;
}

}  // namespace
}  // namespace frazil
