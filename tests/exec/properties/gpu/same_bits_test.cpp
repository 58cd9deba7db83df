// A GPU is as cores are: with equal micro-batches every plan gives the same bits, whatever streams
// it runs on, and whether these have parts of the GPU of their own.

#include <map>

#include "exec/devices/device_numerics.h"
#include "exec/devices/numerics.h"
#include "exec/models/model_precision.h"
#include "planner/plan/placement.h"
#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/plan_changes.h"
#include "tests/exec/properties/gpu/gpu_test.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr int kMicroBatches = 8;

struct TrainedVit {
  std::string name;
  OptimizerConfig optimizer = {};
  VitConfig model = small_config();
  Precision precision = Precision::kFp32;

  ModelSpec spec() const { return with_precision(make_vit(model), precision); }
};

// One model is small, with dropout and clipping; one is wide enough that other kernels are chosen.
std::vector<TrainedVit> trained_vits() {
  TrainedVit small{.name = "small"};
  small.model.dropout = 0.1;
  small.optimizer.clip_norm = 0.5;
  TrainedVit wide{.name = "wide"};
  wide.model.dim = 512;
  wide.model.heads = 8;
  wide.optimizer.kind = OptimizerConfig::Kind::kSgd;
  wide.optimizer.momentum = 0.9;
  return {small, wide};
}

struct Outcome {
  std::uint64_t hash = 0;
  std::vector<double> losses;
};

Outcome run_plans(const TrainedVit& vit, const std::map<Step, Plan>& plans, int devices,
                  const DeviceChoice& choice) {
  frazil::Run run(vit.spec(), vit.optimizer, 7, devices, {.devices = choice});
  Outcome outcome;
  for (Step step = 0; step < 3; ++step) {
    if (const auto plan = plans.find(step); plan != plans.end()) run.transition_to(plan->second);
    outcome.losses.push_back(run.step(step, 1e-2, small_micro_batches(step, kMicroBatches)).loss);
  }
  outcome.hash = run.weight_hash();
  return outcome;
}

ModelProfile structure_of(const TrainedVit& vit) { return make_structure(vit.spec(), 2); }

Plan one_device(const TrainedVit& vit, const std::string& mask = "11111") {
  return make_small_plan(structure_of(vit),
                         {.micro_batches = kMicroBatches, .owned = {kMicroBatches}, .mask = mask});
}

Plan place(const TrainedVit& vit, ScheduleKind kind, int devices,
           const std::string& mask = "11111") {
  const ScheduleFacts& facts = facts_of(kind);
  const int chunks = facts.legal == ScheduleFacts::Chunks::kFixed ? facts.chunks : 2;
  const int stages = devices * chunks;
  const int ways = directions(facts.placement);
  Plan plan = one_device(vit, mask);
  plan.pipelines.clear();
  for (int direction = 0; direction < ways; ++direction) {
    std::vector<LayerId> cuts;
    std::vector<DeviceId> places;
    for (int s = 0; s < stages; ++s) {
      if (s > 0) cuts.emplace_back(s * kSmallLayers / stages);
      places.emplace_back(device_of_stage(facts.placement, devices, direction, s));
    }
    const int share = kMicroBatches / ways;
    plan.pipelines.push_back(make_pipeline(
        kSmallLayers, cuts, places,
        {MicroBatchId{direction * share}, MicroBatchId{(direction + 1) * share - 1}}));
  }
  return with_schedule(plan, {.kind = kind, .chunks = chunks});
}

class GpuSameBits : public GpuTest {};

TEST_F(GpuSameBits, OneStreamRepeatsItself) {
  for (const TrainedVit& vit : trained_vits()) {
    const std::map<Step, Plan> plan = {{0, one_device(vit)}};
    const Outcome first = run_plans(vit, plan, 1, streams());
    EXPECT_EQ(run_plans(vit, plan, 1, streams()).hash, first.hash) << vit.name;
  }
}

TEST_F(GpuSameBits, AHostThatRunsAheadEqualsOneThatWaits) {
  for (const TrainedVit& vit : trained_vits()) {
    const std::map<Step, Plan> alone = {{0, one_device(vit)}};
    const std::map<Step, Plan> moving = {
        {0, place(vit, ScheduleKind::kZbH1, 2)},
        {1, place(vit, ScheduleKind::kZbV, 2)},
        {2, make_small_plan(structure_of(vit),
                            {.micro_batches = 8, .cuts = {{}, {}}, .owned = {3, 5}})}};
    for (const auto& [plans, devices] : {std::pair(alone, 1), std::pair(moving, 2)}) {
      for (const bool splits : {false, true}) {
        const Outcome ahead = run_plans(vit, plans, devices, streams(splits));
        const Outcome waiting = run_plans(vit, plans, devices, streams(splits, /*waits=*/true));
        EXPECT_EQ(ahead.hash, waiting.hash) << vit.name << " on " << devices << " streams";
        EXPECT_EQ(ahead.losses, waiting.losses) << vit.name << " on " << devices << " streams";
      }
    }
  }
}

TEST_F(GpuSameBits, SchedulesEqualOneStream) {
  for (const TrainedVit& vit : trained_vits()) {
    const std::uint64_t expected = run_plans(vit, {{0, one_device(vit)}}, 1, streams()).hash;
    for (const bool splits : {false, true}) {
      for (const auto& [kind, devices] : {std::pair(ScheduleKind::kGpipe, 2),
                                          {ScheduleKind::kGpipe, 4},
                                          {ScheduleKind::kOneForwardOneBackward, 2},
                                          {ScheduleKind::kOneForwardOneBackward, 4},
                                          {ScheduleKind::kInterleaved, 2},
                                          {ScheduleKind::kInterleaved, 4},
                                          {ScheduleKind::kZbH1, 2},
                                          {ScheduleKind::kZbV, 2},
                                          {ScheduleKind::kZbV, 4},
                                          {ScheduleKind::kChimera, 2}}) {
        EXPECT_EQ(run_plans(vit, {{0, place(vit, kind, devices)}}, devices, streams(splits)).hash,
                  expected)
            << vit.name << ", " << schedule_name(kind) << " on " << devices << " streams "
            << (splits ? "with parts" : "that share the GPU");
      }
    }
  }
}

TEST_F(GpuSameBits, InBf16APlanRepeatsItselfAndLearnsAsInFp32) {
  for (TrainedVit vit : trained_vits()) {
    const Outcome wide = run_plans(vit, {{0, one_device(vit)}}, 1, streams());
    vit.precision = Precision::kBf16;
    for (const auto& [kind, devices] : {std::pair(ScheduleKind::kOneForwardOneBackward, 2),
                                        {ScheduleKind::kZbH1, 2},
                                        {ScheduleKind::kGpipe, 4}}) {
      SCOPED_TRACE(vit.name + ", " + std::string(schedule_name(kind)));
      const std::map<Step, Plan> plan = {{0, place(vit, kind, devices)}};
      const Outcome narrow = run_plans(vit, plan, devices, streams());
      EXPECT_EQ(run_plans(vit, plan, devices, streams()).hash, narrow.hash);
      EXPECT_NE(narrow.hash, wide.hash);
      EXPECT_NEAR(narrow.losses.front(), wide.losses.front(), 0.02 * wide.losses.front());
    }
  }
}

TEST_F(GpuSameBits, ReplicasEqualOneStream) {
  for (const TrainedVit& vit : trained_vits()) {
    const ModelProfile structure = structure_of(vit);
    const std::uint64_t expected = run_plans(vit, {{0, one_device(vit)}}, 1, streams()).hash;
    for (const PlanShape& shape :
         std::vector<PlanShape>{{.micro_batches = 8, .cuts = {{}, {}}, .owned = {4, 4}},
                                {.micro_batches = 8, .cuts = {{}, {}, {}}, .owned = {3, 3, 2}},
                                {.micro_batches = 8, .cuts = {{3}, {5}}, .owned = {5, 3}}}) {
      const int devices = devices_of(shape);
      EXPECT_EQ(run_plans(vit, {{0, make_small_plan(structure, shape)}}, devices, streams()).hash,
                expected)
          << vit.name << " on " << devices << " streams";
    }
  }
}

TEST_F(GpuSameBits, FrozenPrefixesEqualOneStream) {
  const TrainedVit vit = trained_vits().front();
  for (const char* mask : {"01111", "00011", "10101"}) {
    const std::uint64_t expected = run_plans(vit, {{0, one_device(vit, mask)}}, 1, streams()).hash;
    for (const ScheduleKind kind : {ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZbV}) {
      EXPECT_EQ(run_plans(vit, {{0, place(vit, kind, 2, mask)}}, 2, streams()).hash, expected)
          << schedule_name(kind) << ", mask " << mask;
    }
  }
}

TEST_F(GpuSameBits, ARunThatMovesEqualsOneThatDoesNot) {
  for (const TrainedVit& vit : trained_vits()) {
    const std::uint64_t expected = run_plans(vit, {{0, one_device(vit)}}, 1, streams()).hash;
    const std::map<Step, Plan> moving = {
        {0, place(vit, ScheduleKind::kOneForwardOneBackward, 4)},
        {1, make_small_plan(structure_of(vit),
                            {.micro_batches = 8, .cuts = {{}, {}}, .owned = {4, 4}})},
        {2, place(vit, ScheduleKind::kZbV, 2)}};
    EXPECT_EQ(run_plans(vit, moving, 4, streams()).hash, expected) << vit.name;
  }
}

// Another processor rounds otherwise, and learns the same.
TEST_F(GpuSameBits, LossesAreThoseOfACore) {
  for (const TrainedVit& vit : trained_vits()) {
    const std::map<Step, Plan> plan = {{0, one_device(vit)}};
    const Outcome gpu = run_plans(vit, plan, 1, streams());
    const Outcome core = run_plans(vit, plan, 1, {});
    for (std::size_t step = 0; step < gpu.losses.size(); ++step) {
      EXPECT_NEAR(gpu.losses[step], core.losses[step], 1e-2 * core.losses[step])
          << vit.name << ", step " << step;
    }
  }
}

TEST_F(GpuSameBits, ALayerIsTheSameOnEveryStream) {
  for (const bool splits : {false, true}) {
    EXPECT_EQ(check_numerics(ComputeDevices(streams(splits), 4)), std::nullopt);
  }
  EXPECT_EQ(check_numerics(ComputeDevices(streams(), 1)), std::nullopt);
}

}  // namespace
}  // namespace frazil
