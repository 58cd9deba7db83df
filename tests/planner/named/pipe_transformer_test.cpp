// Tests PipeTransformer's plans for ViT-B/16 on two hosts of eight devices.

#include "planner/named/pipe_transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "planner/actions/validate_plan.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/reproduce/rtx5000.h"
#include "profiles/error.h"

namespace frazil {
namespace {

class PipeTransformer : public testing::Test {
 protected:
  static FreezeMask mask(int frozen) {
    return frozen == 0 ? FreezeMask::all_active(14)
                       : FreezeMask::frozen_prefix(14, BlockId{frozen});
  }
  Plan plan(int frozen, bool batch_grows = false) const {
    return plan_pipe_transformer(
        {profile_, cluster_},
        {.batch_size = 800, .batch_grows = batch_grows, .mask = mask(frozen)});
  }

  ModelProfile profile_ = make_rtx5000_vision(vit_b16(1000));
  Cluster cluster_ = make_rtx5000_cluster(8, 1);
};

// Describes layers and device of each stage, such as "0-3@0 4-5@1".
std::string describe(const Pipeline& pipeline) {
  std::string text;
  for (const Stage& stage : pipeline.stages) {
    text += (text.empty() ? "" : " ") + std::to_string(stage.layers.front().first.value) + "-" +
            std::to_string(stage.layers.back().last.value) + "@" +
            std::to_string(stage.devices.front().value);
  }
  return text;
}

TEST_F(PipeTransformer, BeginsWithOnePipelineOnEachHost) {
  const Plan begun = plan(0);
  validate(begun, {profile_, cluster_}, "plan");
  ASSERT_EQ(begun.pipelines.size(), 2U);
  EXPECT_EQ(describe(begun.pipelines[0]),
            "0-3@0 4-5@1 6-8@2 9-11@3 12-14@4 15-17@5 18-21@6 22-26@7");
  EXPECT_EQ(describe(begun.pipelines[1]),
            "0-3@8 4-5@9 6-8@10 9-11@11 12-14@12 15-17@13 18-21@14 22-26@15");
  EXPECT_EQ(begun.micro_batch_size, 25);
  EXPECT_EQ(begun.micro_batches(), 32);
}

TEST_F(PipeTransformer, PutsFrozenLayersBeforeTheirPipelineAndTakesMorePipelines) {
  const Plan frozen = plan(6);
  validate(frozen, {profile_, cluster_}, "plan");
  ASSERT_EQ(frozen.pipelines.size(), 4U);
  EXPECT_EQ(describe(frozen.pipelines[0]), "0-12@0 13-15@0 16-18@1 19-21@2 22-26@3");
  EXPECT_EQ(describe(frozen.pipelines[1]), "0-12@4 13-15@4 16-18@5 19-21@6 22-26@7");
  EXPECT_EQ(describe(frozen.pipelines[2]), "0-12@8 13-15@8 16-18@9 19-21@10 22-26@11");
  EXPECT_EQ(describe(plan(12).pipelines[15]), "0-24@15 25-26@15");
}

TEST_F(PipeTransformer, HalvesAsLayersFreezeAndKeepsOrGrowsTheBatch) {
  const std::map<int, std::size_t> pipelines{{0, 2}, {4, 2},  {5, 4},   {8, 4},
                                             {9, 8}, {10, 8}, {11, 16}, {12, 16}};
  for (const auto& [frozen, count] : pipelines) {
    SCOPED_TRACE(frozen);
    EXPECT_EQ(plan(frozen).pipelines.size(), count);
    EXPECT_EQ(plan(frozen).batch_size, 800);
    const Plan grown = plan(frozen, /*batch_grows=*/true);
    EXPECT_EQ(grown.batch_size, 400 * static_cast<int>(count));
    EXPECT_EQ(grown.micro_batch_size, count == 16 ? 100 : 25);
    validate(plan(frozen), {profile_, cluster_}, "plan");
    validate(grown, {profile_, cluster_}, "plan");
  }
}

TEST_F(PipeTransformer, RunsTheFrozenStageOverTheWholeBatchFirst) {
  const PlanSimulation simulation = simulate_plan(plan(6), {profile_, cluster_}, {.clip = true});
  int frozen = 0;
  TimePoint frozen_end{};
  TimePoint active_start = TimePoint::max();
  for (const Span& span : simulation.timeline.spans) {
    if (span.device != DeviceId{0} || span.action.kind != ActionKind::kForward) continue;
    if (span.action.stage == StageId{0}) {
      ++frozen;
      frozen_end = std::max(frozen_end, span.end);
    } else {
      active_start = std::min(active_start, span.start);
    }
  }
  EXPECT_EQ(frozen, plan(6).pipelines[0].micro_batches.front().count());
  EXPECT_EQ(active_start, frozen_end);
}

TEST_F(PipeTransformer, LeavesADeviceIdleWhoseStageIsEmpty) {
  const ModelProfile bert = make_rtx5000_bert(BertShape{}, BertTask::kQuestionAnswering, 256);
  const Plan empty = plan_pipe_transformer({bert, cluster_},
                                           {.batch_size = 128, .mask = FreezeMask::all_active(14)});
  validate(empty, {bert, cluster_}, "plan");
  EXPECT_EQ(describe(empty.pipelines[0]), "0-0@3 1-6@4 7-12@5 13-18@6 19-25@7");
}

TEST_F(PipeTransformer, RefusesWhatItIsNotMadeFor) {
  const auto plan_on = [&](const Cluster& cluster, const FreezeMask& frozen, int batch) {
    return plan_pipe_transformer({profile_, cluster}, {.batch_size = batch, .mask = frozen});
  };
  EXPECT_THROW(plan_on(make_rtx5000_cluster(6, 1), mask(0), 800), InfeasibleError);
  EXPECT_THROW(plan_on(cluster_, FreezeMask::parse("01011111111111", "mask", 0), 800),
               InfeasibleError);
  EXPECT_THROW(plan_on(cluster_, mask(12), 10), InfeasibleError);
  Cluster uneven = cluster_;
  uneven.devices.back().host = HostId{0};
  EXPECT_THROW(plan_on(uneven, mask(0), 800), InfeasibleError);
}

}  // namespace
}  // namespace frazil
