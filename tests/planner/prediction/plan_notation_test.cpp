#include "planner/prediction/plan_notation.h"

#include <gtest/gtest.h>

#include "planner/search/explain_plan.h"
#include "planner/what_if/plan_changes.h"

namespace frazil {
namespace {

// Makes two pipelines of three stages.
Plan sample_plan(const NamedSchedule& schedule) {
  Plan plan;
  plan.schedule = schedule;
  for (const int first : {0, 3}) {
    plan.pipelines.push_back(make_pipeline(
        3, {LayerId{1}, LayerId{2}}, {DeviceId{first}, DeviceId{first + 1}, DeviceId{first + 2}},
        {MicroBatchId{first}, MicroBatchId{first + 2}}));
  }
  return plan;
}

TEST(PlanNotation, HasASuffixForEachThingThatIsNotTheSchedulesOwn) {
  EXPECT_EQ(variant_notation(NamedSchedule{.kind = ScheduleKind::kGpipe}, false), "gpipe");
  EXPECT_EQ(variant_notation(NamedSchedule{ScheduleKind::kZbH1, 3, 1}, false), "zb-h1 K3");
  EXPECT_EQ(variant_notation(NamedSchedule{ScheduleKind::kInterleaved, std::nullopt, 4}, true),
            "interleaved-1f1b v4 R");
  EXPECT_EQ(variant_notation(NamedSchedule{ScheduleKind::kZbV, std::nullopt, 2}, false), "zb-v")
      << "its own number of chunks";
}

TEST(PlanNotation, TellsHowManyPipelinesAreShorter) {
  Plan plan = sample_plan({.kind = ScheduleKind::kZbH1});
  plan.pipelines.push_back(plan.pipelines.back());
  plan.pipelines[1].stages.pop_back();
  EXPECT_EQ(shape_notation(plan), "3 x 3 (1 of 2)");
  plan.pipelines[2].stages.resize(1);
  EXPECT_EQ(shape_notation(plan), "3 x 3 (1 of 2) (1 of 1)");
}

TEST(PlanNotation, TellsSearchedListsFromOthers) {
  Plan plan = sample_plan({.kind = ScheduleKind::kZbH1, .in_flight = 2});
  EXPECT_EQ(shape_notation(plan), "3 x 2");
  EXPECT_EQ(variant_notation(plan), "zb-h1 K2");
  plan.schedule = ExplicitSchedule{};
  EXPECT_EQ(variant_notation(plan), "explicit");
  plan.provenance["schedule"] = "searched for the least makespan in the memory of zb-h1: ..";
  EXPECT_EQ(variant_notation(plan), "search");
  plan.schedule = DispatchPolicy::kFifo;
  EXPECT_EQ(variant_notation(plan), "fifo");
}

TEST(PlanNotation, TheLegendNamesTheSuffixesThatOccurAndNoOthers) {
  Suffixes shown;
  EXPECT_EQ(explain_suffixes(shown), "");
  shown.add(suffixes_of(NamedSchedule{ScheduleKind::kZbH1, 3, 1}, false));
  EXPECT_EQ(explain_suffixes(shown), "KN: N micro-batches in flight at most\n");
  shown.add(suffixes_of(NamedSchedule{ScheduleKind::kGpipe, std::nullopt, 1}, true));
  EXPECT_EQ(explain_suffixes(shown),
            "KN: N micro-batches in flight at most; R: activation checkpointing, stages "
            "run their forwards again\n");
}

TEST(PlanNotation, ShapesLeftOutAreWrittenAsPlansAre) {
  RejectedShapes shapes{.group_devices = 4,
                        .groups = 3,
                        .longer = 0,
                        .micro_batch_size = 2,
                        .schedule = std::nullopt,
                        .recompute = false,
                        .candidates = 1,
                        .rejection = {}};
  EXPECT_EQ(describe_shapes(shapes), "4 x 3, micro-batch 2");
  shapes.schedule = NamedSchedule{ScheduleKind::kOneForwardOneBackward, 3, 1};
  EXPECT_EQ(describe_shapes(shapes), "4 x 3, micro-batch 2, 1f1b K3");
  shapes.longer = 1;
  EXPECT_EQ(shape_notation(shapes), "5 x 3 (2 of 4)") << "two pipelines have a stage less";
  shapes.longer = 0;
  shapes.schedule = NamedSchedule{ScheduleKind::kZbV, std::nullopt, 2};
  EXPECT_EQ(shape_notation(shapes), "8 x 3") << "two stages on each device";
  shapes.schedule = NamedSchedule{ScheduleKind::kDualPipe, std::nullopt, 1};
  EXPECT_EQ(shape_notation(shapes), "4 x 6") << "a pipeline in each direction";
}

}  // namespace
}  // namespace frazil
