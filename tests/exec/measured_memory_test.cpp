// Measured memory beside the simulated: the same logical bytes.

#include <gtest/gtest.h>

#include <functional>

#include "exec/memory_account.h"
#include "exec/optimizer.h"
#include "exec/stash_meter.h"
#include "planner/schedule_menu.h"
#include "planner/simulate_plan.h"
#include "tests/exec/small_vit.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

std::int64_t held(const MemoryPeak& peak, MemoryKind kind) {
  return peak.held[static_cast<std::size_t>(kind)].count;
}
std::int64_t held(const MeasuredMemory& memory, MemoryKind kind) {
  return memory.peak[static_cast<std::size_t>(kind)].count;
}

// With stashes as the profiler measures them, and some times.
ModelProfile make_profile(const ModelSpec& model, const OptimizerConfig& optimizer) {
  DeviceState state;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    state[LayerId{l}] = make_initial_state(model, LayerId{l}, 7);
  }
  ModelProfile profile = make_structure(model, optimizer_bytes_per_parameter_byte(optimizer));
  for (Layer& layer : profile.layers) layer.costs.clear();
  for (int size = 1; size <= kSmallMicroBatch; ++size) {
    const std::vector<Bytes> stashes =
        measure_stashes(model, state, narrow(small_micro_batches(0, 1).front(), 0, size));
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      CostSample cost;
      cost.micro_batch_size = size;
      cost.forward = cost.forward_frozen = microseconds(100);
      cost.backward_input = microseconds(110);
      cost.backward_weight = microseconds(90);
      cost.backward_weight_alone = microseconds(200);
      cost.stash = stashes[l];
      profile.layers[l].costs.push_back(cost);
    }
  }
  return profile;
}

// One action at a time of a device has receive buffers, so changes in list order are those in time.
std::vector<std::int64_t> find_most_received(const TaskGraph& graph, int devices) {
  std::vector<std::int64_t> now(static_cast<std::size_t>(devices));
  std::vector<std::int64_t> most = now;
  for (const MemoryChange& change : graph.memory_changes()) {
    if (change.kind != MemoryKind::kReceive) continue;
    const std::size_t d = change.device.index();
    now[d] += change.delta;
    most[d] = std::max(most[d], now[d]);
  }
  return most;
}

struct Memories {
  std::vector<MemoryPeak> simulated;
  std::vector<std::int64_t> received;    // simulated, at most, by device
  std::vector<MeasuredMemory> measured;  // of the second step: moments are there
};

Memories compare(const PlanShape& shape, const OptimizerConfig& optimizer,
                 const std::function<void(Plan&)>& change = {}) {
  const ModelSpec model = make_vit(small_config());
  const ModelProfile profile = make_profile(model, optimizer);
  Plan plan = make_small_plan(profile, shape);
  if (change) change(plan);
  int devices = devices_of(shape);
  for (const Stage& stage : plan.pipelines[0].stages) {
    for (const DeviceId device : stage.devices) devices = std::max(devices, device.value + 1);
  }
  frazil::Run run(model, optimizer, 7, devices);
  run.switch_to(plan);
  run.step(0, 1e-2, small_micro_batches(0, shape.micro_batches));
  run.measure({.memory = true});
  const Cluster cluster = make_uniform_cluster(devices, Bytes{1LL << 30}, {microseconds(1), {}});
  const SimulatedStep step = simulate_step(plan, profile, cluster);
  return {step.simulation.memory, find_most_received(step.lowered.graph, devices),
          run.step(1, 1e-2, small_micro_batches(1, shape.micro_batches)).memory};
}

void expect_equal(const Memories& memories) {
  ASSERT_EQ(memories.measured.size(), memories.simulated.size());
  for (std::size_t d = 0; d < memories.measured.size(); ++d) {
    const MeasuredMemory& measured = memories.measured[d];
    const MemoryPeak& simulated = memories.simulated[d];
    EXPECT_EQ(measured.device, DeviceId{d});
    for (const MemoryKind kind :
         {MemoryKind::kParameters, MemoryKind::kGradients, MemoryKind::kOptimizer}) {
      EXPECT_EQ(held(measured, kind), held(simulated, kind))
          << "device " << d << ", " << memory_kind_name(kind);
    }
    EXPECT_EQ(held(measured, MemoryKind::kReceive), memories.received[d]) << "device " << d;
    const auto stash = static_cast<double>(held(simulated, MemoryKind::kStash));
    EXPECT_NEAR(static_cast<double>(held(measured, MemoryKind::kStash)), stash, 0.02 * stash)
        << "device " << d;
  }
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

// Micro-batches fewer than twice the stages: not every stage gets to keep all it would.
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

// Of 3 samples one device has 1 and the other 2.
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
  // Of the 3 samples, cut 1 and 2 by the first stage, the second has one on each device.
  EXPECT_EQ(memories.received[0], 0);
  EXPECT_EQ(memories.received[1], 0);
  EXPECT_GT(memories.received[2], 0);
}

// A frozen layer between others saves less than the profile, measured with all of them training.
TEST(MeasuredMemory, OfInteriorFrozenLayersIsNoMoreThanTheSimulated) {
  const Memories memories =
      compare({.micro_batches = 6, .cuts = {{4}}, .owned = {6}, .mask = "10101"}, {});
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_LE(held(memories.measured[d], MemoryKind::kStash),
              held(memories.simulated[d], MemoryKind::kStash));
    EXPECT_EQ(held(memories.measured[d], MemoryKind::kGradients),
              held(memories.simulated[d], MemoryKind::kGradients));
  }
}

TEST(MeasuredMemory, ReturnsToWhatTheStepBeganWith) {
  const Memories memories = compare({.micro_batches = 6, .cuts = {{4}}, .owned = {6}}, {});
  for (const MeasuredMemory& memory : memories.measured) {
    ASSERT_GT(memory.curve.size(), 10U);
    // Parameters, moments, and the gradients that stay reserved.
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
