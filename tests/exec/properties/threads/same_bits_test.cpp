// The product promises that with equal micro-batches every plan gives the same bits.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "planner/plan/placement.h"
#include "planner/plan/schedule_facts.h"
#include "tests/exec/support/changing_rate.h"
#include "tests/exec/support/small_vit.h"
#include "tests/exec/support/test_run.h"

namespace frazil {
namespace {

constexpr int kDevices = 4;

// A run of `steps` steps that puts a plan in force before some of them.
struct Script {
  std::map<Step, PlanShape> plans = {};
  Step steps = 3;
  OptimizerConfig optimizer = {.learning_rate = 1e-2};
  VitConfig model = small_config();
  bool constant_rate = false;
  bool short_last_batch = false;  // every third step lacks a sample and a whole micro-batch
  int devices = kDevices;
};

std::uint64_t hash_of(const Script& script) {
  TestRun run(make_vit(script.model), script.optimizer, 7, script.devices);
  int micro_batches = 0;
  for (Step step = 0; step < script.steps; ++step) {
    if (const auto shape = script.plans.find(step); shape != script.plans.end()) {
      run.transition_to(make_small_plan(run.structure(), shape->second));
      micro_batches = shape->second.micro_batches;
    }
    const bool cut_short = script.short_last_batch && step % 3 == 2;
    const double rate = script.constant_rate ? script.optimizer.learning_rate
                                             : changing_rate(script.optimizer, step, script.steps);
    run.step(step, rate, small_micro_batches(step, micro_batches - (cut_short ? 1 : 0), cut_short));
  }
  return run.weight_hash();
}

std::uint64_t hash_of(const PlanShape& shape) { return hash_of(Script{.plans = {{0, shape}}}); }

PlanShape one_device(int micro_batches) {
  return {.micro_batches = micro_batches, .cuts = {{}}, .owned = {micro_batches}};
}

// Takes three steps of a plan that a Script cannot say.
std::uint64_t hash_of(const std::function<Plan(const ModelProfile&)>& make_plan) {
  const OptimizerConfig optimizer = Script{}.optimizer;
  TestRun run(make_vit(small_config()), optimizer, 7, kDevices);
  run.transition_to(make_plan(run.structure()));
  for (Step step = 0; step < 3; ++step) {
    run.step(step, changing_rate(optimizer, step, 3), small_micro_batches(step, 6));
  }
  return run.weight_hash();
}

TEST(SameBits, AreThoseOfRatesThatChangeAtEveryStep) {
  for (const Step steps : {3, 6, 8, 10}) {
    const OptimizerConfig optimizer{.learning_rate = 1e-2};
    std::vector<double> rates;
    for (Step step = 0; step < steps; ++step) {
      rates.push_back(changing_rate(optimizer, step, steps));
    }
    EXPECT_EQ(rates[0], 0.5e-2) << "half way up";
    EXPECT_EQ(rates[1], 1e-2);
    for (std::size_t i = 2; i < rates.size(); ++i) EXPECT_LT(rates[i], rates[i - 1]);
    EXPECT_GT(rates.back(), 0);
  }
  Script script{.plans = {{0, one_device(6)}}};
  const std::uint64_t changing = hash_of(script);
  script.constant_rate = true;
  EXPECT_NE(hash_of(script), changing) << "the rates must matter";
}

TEST(SameBits, TwoStagesWithEveryCutAndBothSchedulesEqualOneDevice) {
  const std::uint64_t expected = hash_of(one_device(6));
  for (int cut = 1; cut < kSmallLayers; ++cut) {
    for (const ScheduleKind schedule :
         {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward}) {
      SCOPED_TRACE(std::string(schedule_name(schedule)) + ", cut " + std::to_string(cut));
      EXPECT_EQ(hash_of({.schedule = schedule, .cuts = {{cut}}, .owned = {6}}), expected);
    }
  }
}

// Makes the plan of a schedule on two devices, cut into its stages as evenly as eight layers allow.
Plan place_on_two_devices(const ModelProfile& structure, ScheduleKind kind, int chunks,
                          int micro_batches) {
  const ScheduleFacts& facts = facts_of(kind);
  const int stages = 2 * chunks;
  const int ways = directions(facts.placement);
  Plan plan = make_small_plan(structure, one_device(micro_batches));
  plan.pipelines.clear();
  plan.schedule = NamedSchedule{.kind = kind, .chunks = chunks};
  for (int direction = 0; direction < ways; ++direction) {
    std::vector<LayerId> cuts;
    std::vector<DeviceId> devices;
    for (int s = 0; s < stages; ++s) {
      if (s > 0) cuts.emplace_back(s * kSmallLayers / stages);
      devices.emplace_back(device_of_stage(facts.placement, 2, direction, s));
    }
    const int share = micro_batches / ways;
    plan.pipelines.push_back(make_pipeline(
        kSmallLayers, cuts, devices,
        {MicroBatchId{direction * share}, MicroBatchId{(direction + 1) * share - 1}}));
  }
  return plan;
}

std::uint64_t hash_on_two_devices(ScheduleKind kind, int chunks) {
  return hash_of([&](const ModelProfile& structure) {
    return place_on_two_devices(structure, kind, chunks, 6);
  });
}

TEST(SameBits, SchedulesThatReturnToADeviceOrRunBothWaysEqualOneDevice) {
  struct Case {
    ScheduleKind kind;
    int chunks;
  };
  const std::uint64_t expected = hash_of(one_device(6));
  for (const auto& [kind, chunks] : std::vector<Case>{{ScheduleKind::kInterleaved, 2},
                                                      {ScheduleKind::kInterleaved, 3},
                                                      {ScheduleKind::kLoopedBfs, 2},
                                                      {ScheduleKind::kLoopedBfs, 4},
                                                      {ScheduleKind::kHanayo, 2},
                                                      {ScheduleKind::kHanayo, 4},
                                                      {ScheduleKind::kChimera, 1},
                                                      {ScheduleKind::kBitPipe, 2}}) {
    SCOPED_TRACE(std::string(schedule_name(kind)) + ", chunks " + std::to_string(chunks));
    EXPECT_EQ(hash_on_two_devices(kind, chunks), expected);
  }
}

// Runs a schedule with a pipeline in each direction, or with both on device 0 alone.
std::uint64_t hash_of_two_ways(ScheduleKind kind, const std::vector<int>& cuts, int devices) {
  return hash_of([&](const ModelProfile& structure) {
    Plan plan = make_small_plan(structure, one_device(6));
    plan.pipelines.clear();
    plan.schedule = NamedSchedule{.kind = kind};
    for (int way = 0; way < 2; ++way) {
      std::vector<LayerId> own;
      std::vector<DeviceId> places{DeviceId{0}};
      if (devices == 2) {
        own = {LayerId{cuts[static_cast<std::size_t>(way)]}};
        places = {DeviceId{way}, DeviceId{1 - way}};
      }
      plan.pipelines.push_back(make_pipeline(kSmallLayers, own, places,
                                             {MicroBatchId{3 * way}, MicroBatchId{3 * way + 2}}));
    }
    return plan;
  });
}

// The layer is updated once, with what both pipelines have added.
TEST(SameBits, ADeviceMayHoldALayerInTwoPipelines) {
  const std::uint64_t expected = hash_of(one_device(6));
  for (const std::vector<int>& cuts :
       std::vector<std::vector<int>>{{4, 4}, {3, 4}, {2, 7}, {6, 1}}) {
    SCOPED_TRACE("cuts " + std::to_string(cuts[0]) + " and " + std::to_string(cuts[1]));
    EXPECT_EQ(hash_of_two_ways(ScheduleKind::kChimera, cuts, 2), expected);
  }
  EXPECT_EQ(hash_of_two_ways(ScheduleKind::kGpipe, {}, 1), expected);
}

TEST(SameBits, FourStagesEqualOneDevice) {
  EXPECT_EQ(hash_of({.cuts = {{1, 3, 6}}, .owned = {6}}), hash_of(one_device(6)));
}

TEST(SameBits, ReplicasEqualOneDevice) {
  const std::uint64_t expected = hash_of(one_device(6));
  EXPECT_EQ(hash_of({.cuts = {{}, {}}, .owned = {3, 3}}), expected);
  EXPECT_EQ(hash_of({.cuts = {{}, {}, {}}, .owned = {2, 2, 2}}), expected);
  EXPECT_EQ(hash_of({.cuts = {{}, {}, {}, {}}, .owned = {2, 1, 2, 1}}), expected);
}

TEST(SameBits, UnequalOwnersEqualOneDevice) {
  const std::map<int, std::vector<std::vector<int>>> owners = {
      {6, {{3, 3}, {5, 1}, {1, 5}, {6, 0}}},
      {7, {{3, 4}, {5, 2}}},
      {8, {{3, 5}, {7, 1}}},
      {12, {{5, 7}, {1, 11}, {1, 4, 7}}}};
  for (const auto& [micro_batches, splits] : owners) {
    const std::uint64_t expected = hash_of(one_device(micro_batches));
    for (const std::vector<int>& owned : splits) {
      SCOPED_TRACE(std::to_string(owned[0]) + " and the rest of " + std::to_string(micro_batches));
      EXPECT_EQ(hash_of({.micro_batches = micro_batches,
                         .cuts = std::vector<std::vector<int>>(owned.size()),
                         .owned = owned}),
                expected);
    }
  }
}

TEST(SameBits, UnequalReplicasWithDifferentCutsEqualOneDevice) {
  const std::uint64_t expected = hash_of(one_device(7));
  EXPECT_EQ(hash_of({.micro_batches = 7, .cuts = {{3}, {5}}, .owned = {3, 4}}), expected);
  EXPECT_EQ(hash_of({.micro_batches = 7, .cuts = {{2, 5}, {}}, .owned = {5, 2}}), expected);
}

TEST(SameBits, ARunThatChangesShapeThreeTimesEqualsOneThatNeverMoved) {
  Script moved{.plans = {{0, {.cuts = {{4}}, .owned = {6}}},
                         {2, {.cuts = {{}, {}}, .owned = {3, 3}}},
                         {4, {.schedule = ScheduleKind::kGpipe, .cuts = {{2, 5}}, .owned = {6}}},
                         {6, {.cuts = {{6}, {3}}, .owned = {5, 1}}}},
               .steps = 8};
  const Script stayed{.plans = {{0, one_device(6)}}, .steps = 8};
  EXPECT_EQ(hash_of(moved), hash_of(stayed));
  moved.optimizer.kind = OptimizerConfig::Kind::kSgd;
  EXPECT_NE(hash_of(moved), hash_of(stayed)) << "another optimizer must give other weights";
}

// The masks are prefixes, an interior one and a thaw: under the same masks a run that re-plans
// equals one that keeps its plan.
TEST(SameBits, UnderFreezingARunThatReplansEqualsOneThatKeepsItsPlan) {
  const std::vector<std::string> masks = {"11111", "00111", "00011", "10101", "11111"};
  const std::vector<PlanShape> shapes = {{.cuts = {{4}}, .owned = {6}},
                                         {.cuts = {{}, {}}, .owned = {3, 3}},
                                         {.cuts = {{2}, {6}}, .owned = {2, 4}},
                                         {.cuts = {{3, 5}}, .owned = {6}},
                                         {.cuts = {{}}, .owned = {6}}};
  Script replanned{.steps = 10};
  Script kept{.steps = 10};
  for (std::size_t i = 0; i < masks.size(); ++i) {
    PlanShape shape = shapes[i];
    shape.mask = masks[i];
    replanned.plans[static_cast<Step>(2 * i)] = shape;
    PlanShape same = one_device(6);
    same.mask = masks[i];
    kept.plans[static_cast<Step>(2 * i)] = same;
  }
  EXPECT_EQ(hash_of(replanned), hash_of(kept));
  Script unfrozen{.plans = {{0, one_device(6)}}, .steps = 10};
  EXPECT_NE(hash_of(kept), hash_of(unfrozen)) << "freezing must change the weights";
}

TEST(SameBits, ClippingDropoutSgdAndShortBatchesKeepTheBits) {
  for (const bool sgd : {false, true}) {
    Script one{.plans = {{0, one_device(7)}}, .steps = 6, .short_last_batch = true};
    one.model.dropout = 0.1;
    one.optimizer.clip_norm = 0.5;
    if (sgd) one.optimizer.kind = OptimizerConfig::Kind::kSgd;
    Script two = one;
    two.plans = {{0, {.micro_batches = 7, .cuts = {{3}, {5}}, .owned = {5, 2}}},
                 {3, {.micro_batches = 7, .cuts = {{}, {}, {4}}, .owned = {2, 4, 1}}}};
    SCOPED_TRACE(sgd ? "SGD" : "AdamW");
    EXPECT_EQ(hash_of(two), hash_of(one));
    Script unclipped = one;
    unclipped.optimizer.clip_norm = 0;
    EXPECT_NE(hash_of(unclipped), hash_of(one)) << "clipping must matter";
  }
}

TEST(SameBits, AnotherMicroBatchCountGivesOtherBits) {
  // The hash can tell runs apart: other sums round differently.
  EXPECT_NE(hash_of(one_device(6)), hash_of(one_device(5)));
}

std::uint64_t hash_of_divergence(const PlanShape& shape) {
  const OptimizerConfig optimizer{.kind = OptimizerConfig::Kind::kSgd, .learning_rate = 1e30};
  TestRun run(make_vit(small_config()), optimizer, 7, kDevices);
  run.transition_to(make_small_plan(run.structure(), shape));
  double loss = 0;
  for (Step step = 0; step < 4; ++step) {
    loss = run.step(step, changing_rate(optimizer, step, 4), small_micro_batches(step, 6)).loss;
  }
  EXPECT_TRUE(std::isnan(loss)) << loss;
  return run.weight_hash();
}

// Weights that have become no number have bits all the same.
TEST(SameBits, ARunThatDivergesHasAHash) {
  EXPECT_EQ(hash_of_divergence({.cuts = {{}, {}}, .owned = {3, 3}}),
            hash_of_divergence(one_device(6)));
}

}  // namespace
}  // namespace frazil
