// `frazil train` as a process: it holds the plans of `frazil plan --forecast`, makes its
// transitions and caches what that caches, and no choice of plans changes a bit of what is learnt.

#include <gtest/gtest.h>

#include <random>

#include "exec/checkpoint/run_files.h"
#include "planner/plan/activity.h"
#include "planner/plan/plan_json.h"
#include "tests/exec/support/run_verbs.h"
#include "tests/support/write_freeze_trace.h"

namespace frazil {
namespace {

const std::string kAsked =
    "--profile model.json --cluster cluster.json --batch 8 --micro-batch 4 "
    "--json ";

class PlannedRuns : public RunVerbs {
 protected:
  PlannedRuns() : RunVerbs(kHalf) {}

  static void write_masks(const TraceFreeze& policy) {
    FreezeTrace trace;
    trace.blocks.assign(5, "block");
    trace.steps = policy.steps;
    for (const TracedMask& mask : policy.masks) {
      FreezeEvent& event = trace.events.emplace_back();
      event.step = mask.step;
      event.what = MaskEvent{mask.mask};
    }
    write_freeze_trace(trace, policy.path);
  }
  // Expects of a run the plans and the total of the planner, which is told the masks of the run.
  void expect_forecast(const Json& run, const std::string& folder, const std::string& flags) const {
    const Json planned = answer("plan", "--forecast " + folder + "/trace.jsonl " + kAsked + flags);
    EXPECT_EQ(run["plans"]["from_step"], 0);
    EXPECT_EQ(run["plans"]["predicted_ns"], planned["total_ns"]);
    EXPECT_EQ(run["plans"]["hindsight_ns"], planned["total_ns"]);
    EXPECT_EQ(run["plans"]["transitions"], planned["switches"].size());
    ASSERT_EQ(run["phases"].size(), planned["segments"].size());
    for (std::size_t k = 0; k < run["phases"].size(); ++k) {
      const Json& segment = planned["segments"][k];
      EXPECT_EQ(run["phases"][k]["first_step"], segment["step"]);
      EXPECT_EQ(run["phases"][k]["mask"], segment["mask"]);
      const std::string plan = run["phases"][k]["plan"];
      const std::string summary = planned["candidates"][segment["candidate"].get<std::size_t>()];
      EXPECT_EQ(plan.substr(0, summary.size()), summary);
    }
  }
};

std::vector<FreezePolicy> list_policies() {
  return {
      AlphaFreeze{.alpha = 0.5, .start = 1, .interval = 1, .unit = PaceUnit::kEpochs},
      LinearFreeze{.freeze_start = 0.2, .freeze_level = 1, .interval = 3, .unit = PaceUnit::kSteps},
      GradualUnfreeze{.blocks_per_interval = 2, .start = 0, .interval = 1},
      FreezeOut{.t0 = 0.3, .power = 1}};
}

TEST_F(PlannedRuns, HoldTheForecastsPlansAtTheForecastsTotalWithTheSameBits) {
  for (const FreezePolicy& policy : list_policies()) {
    for (const std::string overhead : {"0.01ms", "1ms", "20ms"}) {
      SCOPED_TRACE(std::string(name_of(policy)) + " " + overhead);
      RunConfig asked = config();
      asked.freeze.policy = policy;
      const std::string flags = "--switch-time " + overhead + " ";
      const Json run = train(asked, flags + "--out out --force");
      expect_forecast(run, "out", flags);
      if (overhead != "1ms") continue;
      asked.replan = Replanning::kGreedy;
      EXPECT_EQ(train(asked, "")["state_hash"], run["state_hash"]);
    }
  }
}

TEST_F(PlannedRuns, FollowRandomTraces) {
  const unsigned seed = 20261127;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 8; ++trial) {
    SCOPED_TRACE(trial);
    TraceFreeze policy{.path = path("masks.jsonl"), .steps = kTinySteps};
    for (Step step = 0; step < kTinySteps; step += 1 + static_cast<Step>(random() % 6)) {
      policy.masks.push_back({step, freeze_layers(5, static_cast<int>(random() % 4))});
    }
    write_masks(policy);
    RunConfig asked = config();
    asked.freeze.policy = policy;
    const Json run = train(asked, "--switch-time 0.2ms --out out --force");
    expect_forecast(run, "out", "--switch-time 0.2ms ");
  }
}

TEST_F(PlannedRuns, CacheWhatTheForecastCaches) {
  int fills = 0;
  for (const std::string tier : {"memory", "disk"}) {
    SCOPED_TRACE(tier);
    RunConfig asked = config();
    asked.epochs = 6;
    asked.cache.kind = CacheConfig::Kind::kOn;
    asked.cache.memory = tier == "memory" ? Bytes{1 << 24} : Bytes{0};
    asked.cache.disk = tier == "disk" ? Bytes{1 << 24} : Bytes{0};
    const std::string flags = "--switch-time 0.05ms ";
    const Json run = train(asked, flags + "--out out --force");
    const std::string store = "--samples 48 --cache-" + tier + " 16777216B ";
    expect_forecast(run, "out", flags + store);
    const Json planned = answer("plan", "--forecast out/trace.jsonl " + kAsked + flags + store);
    std::vector<Step> begun;
    for (const FreezeEvent& event : read_freeze_trace(path("out/trace.jsonl")).events) {
      const auto* cache = std::get_if<CacheEvent>(&event.what);
      if (cache != nullptr && cache->change == CacheChange::kBegun) begun.push_back(event.step);
    }
    std::vector<Step> filled;
    for (const Json& fill : planned["fills"]) filled.push_back(fill["step"]);
    EXPECT_EQ(begun, filled);
    fills += static_cast<int>(filled.size());
    RunConfig uncached = asked;
    uncached.cache = {};
    EXPECT_EQ(train(uncached, "")["state_hash"], run["state_hash"]);
  }
  EXPECT_GT(fills, 0);
}

// Returns step and layers of what the run's caches began, filled or read.
std::vector<std::pair<Step, int>> list_caches(const FreezeTrace& trace, CacheChange change) {
  std::vector<std::pair<Step, int>> found;
  for (const FreezeEvent& event : trace.events) {
    const auto* cache = std::get_if<CacheEvent>(&event.what);
    if (cache != nullptr && cache->change == change) found.emplace_back(event.step, cache->layers);
  }
  return found;
}

// A fill takes an epoch, six steps, and masks often change before. What is planned is what is done:
// each plan caches where its segment does, and what begins to fill is filled unless it is given up.
TEST_F(PlannedRuns, FillAndReadOnlyWhatTheExecutorCanWhereMasksChangeWhileACacheFills) {
  const unsigned seed = 20261128;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int fills = 0;
  int shallow = 0;  // segments that read a cache below the end of their prefix
  for (int trial = 0; trial < 8; ++trial) {
    SCOPED_TRACE(trial);
    write_cluster(tiny_cluster(trial % 2 == 0 ? kHalf : kAmpleMemory), path("cluster.json"));
    RunConfig asked = config();
    asked.epochs = 8;
    TraceFreeze policy{.path = path("masks.jsonl"), .steps = 48};
    for (Step step = 0; step < 48; step += 1 + static_cast<Step>(random() % 14)) {
      policy.masks.push_back({step, freeze_layers(5, static_cast<int>(random() % 4))});
    }
    write_masks(policy);
    asked.freeze.policy = policy;
    asked.cache.kind = CacheConfig::Kind::kOn;
    asked.cache.memory = Bytes{1 << 24};
    asked.cache.disk = Bytes{0};
    const std::string flags = "--switch-time 0.05ms ";
    const Json run = train(asked, flags + "--out out --force");
    const std::string store = "--samples 48 --cache-memory 16777216B ";
    expect_forecast(run, "out", flags + store);
    const Json planned = answer("plan", "--forecast out/trace.jsonl " + kAsked + flags + store);
    const FreezeTrace trace = read_freeze_trace(path("out/trace.jsonl"));
    std::vector<std::pair<Step, int>> begun;
    std::vector<std::pair<Step, int>> filled;
    for (const Json& fill : planned["fills"]) {
      begun.emplace_back(fill["step"], fill["features"]["layers"]);
      const Step steps = fill["filling_steps"];
      if (steps == 6) filled.emplace_back(begun.back().first + steps, begun.back().second);
    }
    EXPECT_EQ(list_caches(trace, CacheChange::kBegun), begun);
    EXPECT_EQ(list_caches(trace, CacheChange::kFilled), filled);
    fills += static_cast<int>(filled.size());
    for (std::size_t k = 0; k < planned["segments"].size(); ++k) {
      const Json& segment = planned["segments"][k];
      const Plan plan = read_plan(path("out/phase-" + std::to_string(k) + "/plan.json"));
      EXPECT_EQ(plan.cache_frozen_prefix, !segment["cache"].is_null()) << segment.dump();
      if (segment["cache"].is_null()) continue;
      const ModelProfile profile = tiny_profile(tiny_config());
      shallow += segment["cache"]["layers"] < find_activity(profile, plan).cached ? 1 : 0;
    }
    asked.cache = {};
    EXPECT_EQ(train(asked, "")["state_hash"], run["state_hash"]);
  }
  EXPECT_GT(fills, 3);
  EXPECT_GT(shallow, 0);
}

std::vector<FreezePolicy> list_measuring_policies() {
  return {PaperFreeze{.alpha = 0.5, .start = 2, .interval = 3},
          AutoFreeze{.percentile = 60, .start = 2, .interval = 3},
          PlasticityFreeze{.tolerance = 0.9, .start = 1, .interval = 2}};
}

// Where the masks are not known, the rule without a forecast says how far it is from hindsight.
TEST_F(PlannedRuns, StayWithinTheStatedFactorWhereMasksFollowFromSignals) {
  for (const FreezePolicy& policy : list_measuring_policies()) {
    SCOPED_TRACE(std::string(name_of(policy)));
    RunConfig asked = config();
    asked.freeze.policy = policy;
    const Json run = train(asked, "--switch-time 0.3ms --out out --force");
    const Json& plans = run["plans"];
    ASSERT_TRUE(plans.contains("worst_factor")) << run.dump(1);
    EXPECT_EQ(plans["from_step"], 0);
    EXPECT_LE(plans["hindsight_ns"], plans["predicted_ns"]);
    EXPECT_LE(plans["predicted_ns"], plans["hindsight_ns"].get<std::int64_t>() *
                                             plans["worst_factor"].get<std::int64_t>() +
                                         plans["worst_additive_ns"].get<std::int64_t>());
    EXPECT_EQ(answer("report", "out --json")["runs"][0]["plans"], plans);
    EXPECT_NE(folder_.run("report", "out").out.find("the masks were not known: at most "),
              std::string::npos);
    asked.replan = Replanning::kGreedy;
    EXPECT_EQ(train(asked, "")["state_hash"], run["state_hash"]);
    EXPECT_EQ(train(asked, "--keep-plan")["state_hash"], run["state_hash"]);
  }
}

// What a transition costs is measured here, and differs from run to run; the checkpoint has it.
TEST_F(PlannedRuns, GoOnFromACheckpointWithTheSamePlans) {
  std::vector<FreezePolicy> policies = list_measuring_policies();
  policies.push_back(list_policies().front());
  for (const FreezePolicy& policy : policies) {
    SCOPED_TRACE(std::string(name_of(policy)));
    RunConfig asked = config();
    asked.freeze.policy = policy;
    const Json whole = train(asked, "--out out --force --checkpoint-every 9");
    ASSERT_TRUE(std::filesystem::remove(path("out/checkpoints/" + checkpoint_name(kTinySteps))));
    const Json resumed = answer("train", "--resume out --quiet --json");
    ASSERT_EQ(resumed["resumed_from_step"], 9);
    EXPECT_EQ(resumed["state_hash"], whole["state_hash"]);
    for (const char* key : {"from_step", "predicted_ns", "hindsight_ns", "transitions"}) {
      EXPECT_EQ(resumed["plans"][key], whole["plans"][key]) << key;
    }
    const auto plan_at = [](const Json& run, Step step) {
      std::string plan;
      for (const Json& phase : run["phases"]) {
        if (phase["first_step"] <= step) plan = phase["plan"];
      }
      return plan;
    };
    for (Step step = 9; step < kTinySteps; ++step) {
      EXPECT_EQ(plan_at(resumed, step), plan_at(whole, step)) << step;
    }
  }
}

}  // namespace
}  // namespace frazil
