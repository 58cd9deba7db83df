// `frazil train --planner NAME` goes on under each mask with the plan of another system's planner,
// and leaves the same bits.

#include <gtest/gtest.h>

#include <set>

#include "exec/checkpoint/run_files.h"
#include "planner/plan/plan_json.h"
#include "tests/exec/support/run_verbs.h"

namespace frazil {
namespace {

class LedRuns : public RunVerbs {
 protected:
  LedRuns() : RunVerbs(kAmpleMemory) {}

  Plan plan_of(const std::string& folder, std::size_t phase) const {
    return read_plan(path(folder + "/phase-" + std::to_string(phase) + "/plan.json"));
  }
};

// The pipeline is halved as PipeTransformer's own equation says: as soon as what trains on one
// device is no more than the larger half was at the start.
TEST_F(LedRuns, ShrinkThePipelineAndGrowReplicasAsPipeTransformerDoesWithTheSameBits) {
  const Json plain = train(config(), "");
  const Json led = train(config(), "--planner pipetransformer --out out");
  EXPECT_EQ(led["state_hash"], plain["state_hash"]);
  ASSERT_EQ(led["phases"].size(), 3U);
  const Plan first = plan_of("out", 0);
  EXPECT_EQ(first.pipelines.size(), 1U);
  EXPECT_EQ(first.pipelines[0].stages.size(), 2U);
  const Plan last = plan_of("out", 2);
  ASSERT_EQ(last.pipelines.size(), 2U);
  for (const Pipeline& pipeline : last.pipelines) {
    ASSERT_EQ(pipeline.stages.size(), 2U);
    EXPECT_EQ(pipeline.stages[0].devices, pipeline.stages[1].devices);
  }
  for (std::size_t k = 0; k < 3; ++k) {
    const Plan plan = plan_of("out", k);
    EXPECT_EQ(plan.micro_batch_size, 4);
    EXPECT_EQ(plan.batch_size, 8);
    EXPECT_EQ(plan.reduction, ReductionMode::kExact);
    EXPECT_EQ(std::get<NamedSchedule>(plan.schedule).kind, ScheduleKind::kGpipe);
    EXPECT_EQ(led["phases"][k]["mask"], plain["phases"][k]["mask"]);
  }
}

TEST_F(LedRuns, OfOtherPlannersLeaveTheSameBits) {
  const Json plain = train(config(), "");
  std::set<std::string> plans;
  for (const std::string name :
       {"torchgpipe", "pipedream", "dynmo", "dynmo-diffusion", "uniform"}) {
    SCOPED_TRACE(name);
    const Json led = train(config(), "--planner " + name);
    EXPECT_EQ(led["state_hash"], plain["state_hash"]);
    for (const Json& phase : led["phases"]) plans.insert(phase["plan"]);
  }
  EXPECT_GE(plans.size(), 3U);
}

TEST_F(LedRuns, WithOneReplicaAreAutoPipeWithoutAutoDp) {
  const Json led = train(config(), "--planner pipetransformer --max-replicas 1 --out out");
  EXPECT_EQ(led["state_hash"], train(config(), "")["state_hash"]);
  const Plan last = plan_of("out", 2);
  ASSERT_EQ(last.pipelines.size(), 1U);
  for (const Stage& stage : last.pipelines[0].stages) {
    EXPECT_EQ(stage.devices, std::vector<DeviceId>{DeviceId{0}});
  }
}

TEST_F(LedRuns, CacheTheFrozenPrefixWithTheSameBits) {
  RunConfig cached = config();
  cached.epochs = 6;
  RunConfig plain = cached;
  cached.cache.kind = CacheConfig::Kind::kOn;
  cached.cache.memory = Bytes{1 << 24};
  cached.cache.admission = CacheConfig::Admission::kAlways;
  const Json led = train(cached, "--planner pipetransformer");
  EXPECT_GT(led["cache"]["found"], 0);
  EXPECT_EQ(led["state_hash"], train(plain, "")["state_hash"]);
}

TEST_F(LedRuns, GoOnAfterACheckpointWithTheSamePlanner) {
  const Json whole = train(config(), "--planner pipetransformer --out out --checkpoint-every 9");
  ASSERT_TRUE(std::filesystem::remove(path("out/checkpoints/" + checkpoint_name(kTinySteps))));
  const Json resumed = answer("train", "--resume out --quiet --json");
  EXPECT_EQ(resumed["state_hash"], whole["state_hash"]);
  EXPECT_EQ(resumed["phases"].back()["plan"], whole["phases"].back()["plan"]);
}

// Of the masks that come, the last ones want two pipelines, and a step has one micro-batch.
TEST_F(LedRuns, EndBeforeTheirFirstStepWhereThePlannerHasNoPlanForAMaskThatIsKnownToCome) {
  const std::string sentence =
      " the run cannot follow pipetransformer: pipetransformer has 2 pipelines for 1 micro-batches";
  RunConfig asked = config();
  asked.micro_batch_size = 8;
  expect_refusal(asked, "--planner pipetransformer", 3, "under the mask 00011" + sentence);
  asked.freeze.policy = AutoFreeze{.percentile = 60, .start = 2, .interval = 3};
  const Outcome met = begin(asked, "--planner pipetransformer --out out");
  EXPECT_EQ(met.code, 3);
  EXPECT_NE(met.err.find(sentence), std::string::npos) << met.err;
  EXPECT_TRUE(std::filesystem::exists(path("out/events.jsonl")));
}

TEST_F(LedRuns, RefuseWhatTheExecutorCannotFollow) {
  for (const std::string name : {"pipe-bd", "pipe-bd-memory"}) {
    expect_refusal(config(), "--planner " + name, 2,
                   "found --planner " + name +
                       ", whose plans share micro-batches by samples, expected one that a run can "
                       "follow: torchgpipe, pipetransformer, pipedream, dynmo, dynmo-diffusion or "
                       "uniform");
  }
  expect_refusal(config(), "--planner pipetransfomer", 2, "pipetransformer");
  expect_refusal(config(), "--planner uniform --schedules 1f1b", 2, "beside --schedules");
  RunConfig grows = config();
  grows.batch_growth = BatchGrowth::kWithPipelines;
  expect_refusal(grows, "--planner pipetransformer", 2, "a batch that grows with the pipelines");
}

}  // namespace
}  // namespace frazil
