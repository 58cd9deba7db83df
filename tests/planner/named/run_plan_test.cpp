// Tests the plans of other systems' planners for a run of ViT-B/16 on two hosts of eight devices.

#include "planner/named/run_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "planner/actions/validate_plan.h"
#include "planner/named/pipe_transformer.h"
#include "planner/reproduce/rtx5000.h"
#include "profiles/error.h"

namespace frazil {
namespace {

class RunPlans : public testing::Test {
 protected:
  SearchOptions question(int frozen, int size) const {
    SearchOptions asked;
    asked.batch_size = 800;
    asked.micro_batch_sizes = {size};
    asked.mask =
        frozen == 0 ? FreezeMask::all_active(14) : FreezeMask::frozen_prefix(14, BlockId{frozen});
    return asked;
  }
  Plan plan(NamedPlanner planner, const SearchOptions& asked) const {
    return make_run_plan(planner, {profile_, cluster_}, asked);
  }

  ModelProfile profile_ = make_rtx5000_vision(vit_b16(1000));
  Cluster cluster_ = make_rtx5000_cluster(8, 1);
};

// Returns how many samples each pipeline gets, and expects that all micro-batches are dealt once.
std::vector<int> count_samples(const Plan& plan) {
  std::vector<int> samples;
  int next = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    samples.push_back(0);
    for (const auto& interval : pipeline.micro_batches) {
      EXPECT_EQ(interval.first.value, next);
      next = interval.last.value + 1;
      samples.back() += (interval.last.value - interval.first.value + 1) * plan.micro_batch_size;
    }
  }
  EXPECT_EQ(next * plan.micro_batch_size, plan.batch_size);
  return samples;
}

// A tree of gradients in mode exact takes more memory than these devices have.
TEST_F(RunPlans, OfPipeTransformerHaveItsStagesAndTheRunsMicroBatches) {
  for (Device& device : cluster_.devices) device.memory_limit = Bytes{std::int64_t{1} << 40};
  for (const int frozen : {0, 5, 6, 9, 12}) {
    SCOPED_TRACE(frozen);
    const SearchOptions asked = question(frozen, 10);
    const Plan made = plan(NamedPlanner::kPipeTransformer, asked);
    const Plan published =
        plan_pipe_transformer({profile_, cluster_}, {.batch_size = 800, .mask = asked.mask});
    EXPECT_EQ(made.micro_batch_size, 10);
    EXPECT_EQ(made.reduction, asked.reduction);
    ASSERT_EQ(made.pipelines.size(), published.pipelines.size());
    for (std::size_t r = 0; r < made.pipelines.size(); ++r) {
      EXPECT_EQ(made.pipelines[r].stages, published.pipelines[r].stages);
    }
    const std::vector<int> equal(made.pipelines.size(),
                                 800 / static_cast<int>(made.pipelines.size()));
    EXPECT_EQ(count_samples(made), equal);
    validate(made, {profile_, cluster_}, "plan");
  }
}

// Twelve frozen blocks leave room for eight pipelines on each host.
TEST_F(RunPlans, OfPipeTransformerLeaveDevicesIdleWhereReplicasAreLimited) {
  for (const auto& [most, pipelines] : std::vector<std::pair<int, std::size_t>>{
           {2, 2}, {3, 2}, {4, 4}, {5, 4}, {16, 16}, {100, 16}}) {
    SearchOptions asked = question(12, 10);
    asked.max_replicas = most;
    const Plan limited = plan(NamedPlanner::kPipeTransformer, asked);
    EXPECT_EQ(limited.pipelines.size(), pipelines);
    std::set<DeviceId> used;
    for (const Pipeline& pipeline : limited.pipelines) {
      for (const Stage& stage : pipeline.stages) used.insert(stage.devices[0]);
    }
    EXPECT_EQ(used.size(), pipelines);
  }
}

std::string refusal_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

TEST_F(RunPlans, AreRefusedWithPlannerMaskAndReason) {
  SearchOptions asked = question(12, 10);
  asked.max_replicas = 1;
  const std::string mask = "under the mask 00000000000001 the run cannot follow ";
  EXPECT_EQ(refusal_of([&] { (void)plan(NamedPlanner::kPipeTransformer, asked); }),
            mask +
                "pipetransformer: pipetransformer has a pipeline on each of 2 hosts, and at "
                "most 1 may be");
  cluster_.devices[0].memory_limit = Bytes{1 << 20};
  EXPECT_NE(refusal_of([&] {
              (void)plan(NamedPlanner::kUniform, question(12, 10));
            }).find(mask + "uniform: " + cluster_.devices[0].name + " needs "),
            std::string::npos);
}

TEST_F(RunPlans, AreThoseOfEveryPlannerButPipeBd) {
  for (const std::string_view name : all_planner_names()) {
    const bool leads = !name.starts_with("pipe-bd");
    EXPECT_EQ(leads_runs(*find_planner(name)), leads) << name;
  }
  EXPECT_EQ(list_leading_planners().size() + 2, all_planner_names().size());
}

}  // namespace
}  // namespace frazil
