// Measured memory has the same logical bytes as the simulated.

#include <gtest/gtest.h>

#include <functional>

#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"
#include "tests/exec/models/model_plans.h"
#include "tests/exec/support/measured_memories.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

Memories compare(const PlanShape& shape, const OptimizerConfig& optimizer,
                 const std::function<void(Plan&)>& change = {}) {
  const ModelSpec model = make_vit(small_config());
  const ModelProfile profile =
      make_measured_profile(model, optimizer, small_micro_batches(0, 1).front());
  Plan plan = make_small_plan(profile, shape);
  if (change) change(plan);
  int devices = devices_of(shape);
  for (const Stage& stage : plan.pipelines[0].stages) {
    for (const DeviceId device : stage.devices) devices = std::max(devices, device.value + 1);
  }
  return measure_memories(
      model, optimizer, profile, plan, devices,
      {small_micro_batches(0, shape.micro_batches), small_micro_batches(1, shape.micro_batches)});
}

TEST(MeasuredMemory, EqualsTheSimulatedOfEveryLinearScheduleAndCut) {
  OptimizerConfig sgd;
  sgd.kind = OptimizerConfig::Kind::kSgd;
  sgd.momentum = 0.9;
  for (const ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
        ScheduleKind::kEagerOneForwardOneBackward, ScheduleKind::kZbH1, ScheduleKind::kZbH2}) {
    for (const int micro_batches : {5, 6, 8}) {
      for (const std::vector<std::vector<int>>& cuts :
           std::vector<std::vector<std::vector<int>>>{{{}}, {{3}}, {{2, 5}}, {{1, 3, 6}}}) {
        SCOPED_TRACE(std::string(schedule_name(kind)) + ", " + std::to_string(micro_batches) +
                     " micro-batches, " + std::to_string(cuts[0].size() + 1) + " stages");
        PlanShape shape{.micro_batches = micro_batches, .cuts = cuts, .owned = {micro_batches}};
        shape.schedule = kind;
        expect_equal(compare(shape, micro_batches == 6 ? sgd : OptimizerConfig{}));
      }
    }
  }
}

TEST(MeasuredMemory, EqualsTheSimulatedOfReplicas) {
  expect_equal(compare({.micro_batches = 6, .cuts = {{}, {}}, .owned = {3, 3}}, {}));
  expect_equal(compare({.micro_batches = 7, .cuts = {{3}, {5}}, .owned = {5, 2}}, {}));
  const auto fast = [](Plan& plan) { plan.reduction = ReductionMode::kFast; };
  expect_equal(compare({.micro_batches = 8, .cuts = {{}, {}}, .owned = {4, 4}}, {}, fast));
}

// Pipelines go in both directions, cut so that a device has layers in both; the schedule decides
// which gradients it holds when.
TEST(MeasuredMemory, IsWithinTheSimulatedWhereADeviceHoldsALayerInTwoPipelines) {
  const auto reverse = [](Plan& plan) {
    std::vector<Stage>& stages = plan.pipelines[1].stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      stages[s].devices = {DeviceId{stages.size() - 1 - s}};
    }
  };
  for (const std::vector<int>& cuts : std::vector<std::vector<int>>{{3, 4}, {2, 7}, {6, 1}}) {
    SCOPED_TRACE("cuts " + std::to_string(cuts[0]) + " and " + std::to_string(cuts[1]));
    PlanShape shape{.micro_batches = 6, .cuts = {{cuts[0]}, {cuts[1]}}, .owned = {3, 3}};
    shape.schedule = ScheduleKind::kChimera;
    const Memories memories = compare(shape, {}, reverse);
    for (std::size_t d = 0; d < 2; ++d) {
      const MeasuredMemory& measured = memories.measured.at(d);
      const MemoryTrace& simulated = memories.simulated.at(d);
      for (const MemoryKind kind : {MemoryKind::kParameters, MemoryKind::kOptimizer}) {
        EXPECT_EQ(held(measured, kind), held(simulated, kind)) << memory_kind_name(kind);
      }
      const std::int64_t gradients = held(simulated, MemoryKind::kGradients);
      EXPECT_LE(held(measured, MemoryKind::kGradients), gradients);
      EXPECT_GE(held(measured, MemoryKind::kGradients), gradients / 2);
    }
  }
}

TEST(MeasuredMemory, EqualsTheSimulatedWithAFrozenPrefix) {
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward}) {
    for (const char* mask : {"01111", "00111", "00011", "00001"}) {
      for (const int cut : {3, 4}) {
        SCOPED_TRACE(std::string(schedule_name(kind)) + ", " + mask + ", cut before layer " +
                     std::to_string(cut));
        PlanShape shape{.micro_batches = 6, .cuts = {{cut}}, .owned = {6}, .mask = mask};
        shape.schedule = kind;
        expect_equal(compare(shape, {}));
      }
    }
  }
}

TEST(MeasuredMemory, OfRecomputingStagesIsTheirInputsAndOneStash) {
  const auto recompute = [](Plan& plan) {
    for (Stage& stage : plan.pipelines[0].stages) stage.memory = MemoryPolicy::kRecompute;
  };
  for (const char* mask : {"11111", "00011"}) {
    SCOPED_TRACE(mask);
    expect_equal(
        compare({.micro_batches = 6, .cuts = {{3}}, .owned = {6}, .mask = mask}, {}, recompute));
  }
}

// The placements are looped, V and wave, and both ways, and there is a stage on several devices;
// all small models take part.
TEST(MeasuredMemory, EqualsTheSimulatedOnEveryPlacement) {
  const std::vector<PlanForm> forms = {
      {.schedule = ScheduleKind::kInterleaved, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kLoopedBfs, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kInterleavedZb, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kZbV, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kVHalf, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kVMin, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kDualPipeV, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kHanayo, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kTwoBp, .devices = 2},
      {.schedule = ScheduleKind::kChimera, .devices = 2},
      {.schedule = ScheduleKind::kDualPipe, .devices = 2},
      {.schedule = ScheduleKind::kBitPipe, .devices = 2, .chunks = 2},
      {.devices = 3, .shared_stage = 1}};
  int compared = 0;
  for (const TestModel& model : {decoder_model(), encoder_model(), uneven_mlp_model(),
                                 small_cnn_model(), distillation_model()}) {
    const auto samples = [&](std::uint64_t seed) {
      return model.samples({.seed = seed, .micro_batches = 4});
    };
    const ModelProfile profile = make_measured_profile(model.spec, {}, samples(1).front());
    for (const PlanForm& form : forms) {
      SCOPED_TRACE(model.spec.name + ", " + name_of(form));
      Plan plan;
      try {
        plan = make_plan(model, form);
      } catch (const InfeasibleError&) {
        continue;  // too few layers
      }
      expect_equal(measure_memories(model.spec, {}, profile, plan, form.all_devices(),
                                    {samples(1), samples(2)}));
      ++compared;
    }
  }
  EXPECT_GE(compared, 60);
}

// A step with fewer micro-batches than twice the stages does not let every stage keep all it would.
TEST(MeasuredMemory, EqualsTheSimulatedOfWeightVersions) {
  for (const ScheduleKind kind : {ScheduleKind::kPipeDream, ScheduleKind::kPipeDream2Bw}) {
    for (const int micro_batches : {1, 3, 4, 5, 6, 9}) {
      for (const std::vector<int>& cuts :
           std::vector<std::vector<int>>{{}, {3}, {2, 5}, {1, 3, 6}}) {
        for (const char* mask : {"11111", "00111"}) {
          SCOPED_TRACE(std::string(schedule_name(kind)) + ", " + std::to_string(micro_batches) +
                       " micro-batches, " + std::to_string(cuts.size() + 1) + " stages, " + mask);
          PlanShape shape{.micro_batches = micro_batches, .cuts = {cuts}, .owned = {micro_batches}};
          shape.schedule = kind;
          shape.mask = mask;
          expect_equal(compare(shape, {}, [kind](Plan& plan) {
            plan.versions = kind == ScheduleKind::kPipeDream ? WeightVersions::kStash
                                                             : WeightVersions::kTwoBuffered;
          }));
        }
      }
    }
  }
}

void slice_first_stage(Plan& plan) {
  plan.reduction = ReductionMode::kFast;
  Stage& first = plan.pipelines[0].stages[0];
  first.devices = {DeviceId{0}, DeviceId{1}};
  first.axis = DeviceAxis::kSamples;
  plan.pipelines[0].stages[1].devices = {DeviceId{2}};
}

// One device has 1 of the 3 samples of a micro-batch, the next has 2.
TEST(MeasuredMemory, OfSlicedStagesIsThatOfTheirSamples) {
  for (const ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZbH1}) {
    PlanShape shape{.micro_batches = 5, .cuts = {{4}}, .owned = {5}};
    shape.schedule = kind;
    SCOPED_TRACE(schedule_name(kind));
    expect_equal(compare(shape, {}, slice_first_stage));
  }
  expect_equal(compare({.micro_batches = 5, .cuts = {{4}}, .owned = {5}}, {}, [](Plan& plan) {
    slice_first_stage(plan);
    for (Stage& stage : plan.pipelines[0].stages) stage.memory = MemoryPolicy::kRecompute;
  }));
}

// Both stages lie on devices 0 and 1: what a device has made itself is not received.
TEST(MeasuredMemory, ReceivedByASliceIsWhatItLacks) {
  const auto change = [](Plan& plan) {
    slice_first_stage(plan);
    Stage& second = plan.pipelines[0].stages[1];
    second.devices = {DeviceId{0}, DeviceId{1}, DeviceId{2}};
    second.axis = DeviceAxis::kSamples;
  };
  PlanShape shape{.micro_batches = 4, .cuts = {{2}}, .owned = {4}, .mask = "00011"};
  shape.schedule = ScheduleKind::kGpipe;
  const Memories memories = compare(shape, {}, change);
  expect_equal(memories);
  // The first stage cuts the 3 samples 1 and 2, the second has one on each device.
  EXPECT_EQ(held(memories.simulated[0], MemoryKind::kReceive), 0);
  EXPECT_EQ(held(memories.simulated[1], MemoryKind::kReceive), 0);
  EXPECT_GT(held(memories.simulated[2], MemoryKind::kReceive), 0);
}

// A frozen layer between others keeps nothing for a W it does not have.
TEST(MeasuredMemory, EqualsTheSimulatedOfInteriorFrozenLayers) {
  for (const char* mask : {"10101", "10111", "11011", "11101", "10001", "01011", "11001"}) {
    for (const ScheduleKind kind : {ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZbH1}) {
      SCOPED_TRACE(std::string(schedule_name(kind)) + ", " + mask);
      PlanShape shape{.micro_batches = 6, .cuts = {{4}}, .owned = {6}, .mask = mask};
      shape.schedule = kind;
      expect_equal(compare(shape, {}));
    }
  }
}

TEST(MeasuredMemory, ReturnsToWhatTheStepBeganWith) {
  const Memories memories = compare({.micro_batches = 6, .cuts = {{4}}, .owned = {6}}, {});
  for (const MeasuredMemory& memory : memories.measured) {
    ASSERT_GT(memory.curve.size(), 10U);
    // The step leaves parameters, moments, and the gradients that stay reserved.
    EXPECT_EQ(memory.curve.back().total.count, held(memory, MemoryKind::kParameters) +
                                                   held(memory, MemoryKind::kOptimizer) +
                                                   held(memory, MemoryKind::kGradients));
    for (std::size_t i = 1; i < memory.curve.size(); ++i) {
      EXPECT_LE(memory.curve[i - 1].at, memory.curve[i].at);
    }
  }
}

}  // namespace
}  // namespace frazil
