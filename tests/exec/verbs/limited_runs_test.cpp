// `frazil train --max-replicas N` asks for no plan with more replicas, neither when it begins nor
// later, and no limit changes a bit of what is learnt.

#include <gtest/gtest.h>

#include <set>

#include "exec/checkpoint/run_files.h"
#include "planner/plan/plan_json.h"
#include "tests/exec/support/run_verbs.h"

namespace frazil {
namespace {

class LimitedRuns : public RunVerbs {
 protected:
  LimitedRuns() : RunVerbs(kAmpleMemory) {}

  // Trains, keeps the run and returns it.
  Json kept(const RunConfig& config, const std::string& arguments) const {
    return train(config, arguments + " --out out --force");
  }
  // Returns the most pipelines of the kept run's plans that have devices of their own: one that
  // runs the other way through the same devices is no replica.
  int most_replicas() const {
    int most = 0;
    for (int phase = 0;; ++phase) {
      const std::string file = path("out/phase-" + std::to_string(phase) + "/plan.json");
      if (!std::filesystem::exists(file)) return most;
      std::set<DeviceId> taken;
      int replicas = 0;
      for (const Pipeline& pipeline : read_plan(file).pipelines) {
        replicas += taken.contains(pipeline.stages[0].devices[0]) ? 0 : 1;
        for (const Stage& stage : pipeline.stages) {
          EXPECT_EQ(stage.devices.size(), 1U);
          taken.insert(stage.devices[0]);
        }
      }
      most = std::max(most, replicas);
    }
  }
};

TEST_F(LimitedRuns, HoldForEveryPlanOfTrajectoryRuleAndGreedyWithTheSameBits) {
  RunConfig measuring = config();
  measuring.freeze.policy = PaperFreeze{.alpha = 0.5, .start = 2, .interval = 3};
  RunConfig greedy = config();
  greedy.replan = Replanning::kGreedy;
  for (const RunConfig& asked : {config(), measuring, greedy}) {
    const Json free = kept(asked, "--switch-time 0.01ms");
    EXPECT_EQ(most_replicas(), 2);
    const Json limited = kept(asked, "--switch-time 0.01ms --max-replicas 1");
    EXPECT_EQ(most_replicas(), 1);
    EXPECT_EQ(limited["state_hash"], free["state_hash"]);
  }
}

TEST_F(LimitedRuns, KeepABatchThatGrowsAsItIs) {
  RunConfig asked = config();
  asked.batch_growth = BatchGrowth::kWithPipelines;
  asked.micro_batch_size = 2;
  (void)kept(asked, "");
  EXPECT_EQ(most_replicas(), 2);
  const Json limited = kept(asked, "--max-replicas 1");
  EXPECT_EQ(most_replicas(), 1);
  RunConfig stays = asked;
  stays.batch_growth = BatchGrowth::kNone;
  EXPECT_EQ(limited["state_hash"], train(stays, "")["state_hash"]);
}

TEST_F(LimitedRuns, GoOnWithTheirLimitAfterACheckpointAndWithAnotherWhereItIsGiven) {
  RunConfig asked = config();
  asked.replan = Replanning::kGreedy;
  const Json whole = kept(asked, "--max-replicas 1 --checkpoint-every 9");
  const auto resume = [&](const std::string& flags) {
    EXPECT_TRUE(std::filesystem::remove(path("out/checkpoints/" + checkpoint_name(kTinySteps))));
    const Json resumed = answer("train", "--resume out --quiet --json " + flags);
    EXPECT_EQ(resumed["resumed_from_step"], 9);
    EXPECT_EQ(resumed["state_hash"], whole["state_hash"]);
    return most_replicas();
  };
  EXPECT_EQ(resume(""), 1);
  EXPECT_EQ(resume("--max-replicas 2"), 2);
  EXPECT_EQ(resume(""), 2);
}

TEST_F(LimitedRuns, RefuseAPlanWithMorePipelinesOrDevicesOfAStage) {
  const ModelProfile profile = tiny_profile(tiny_config());
  Plan plan = make_small_plan(profile, {.micro_batches = 2, .cuts = {{}, {}}, .owned = {1, 1}});
  plan.batch_size = 8;
  plan.micro_batch_size = 4;
  write_plan(plan, path("replicas.json"));
  Plan shared = plan;
  shared.pipelines.pop_back();
  shared.pipelines[0].stages[0].devices = {DeviceId{0}, DeviceId{1}};
  shared.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{1}}};
  write_plan(shared, path("shared.json"));
  for (const std::string file : {"replicas.json", "shared.json"}) {
    expect_refusal(config(), "--max-replicas 1 --plan " + file, 2,
                   file +
                       ": found 2 pipelines or devices of a stage, expected at most 1, as "
                       "--max-replicas says");
    EXPECT_EQ(begin(config(), "--max-replicas 2 --plan " + file).code, 0);
  }
  expect_refusal(config(), "--max-replicas 0", 2, "--max-replicas");
}

}  // namespace
}  // namespace frazil
