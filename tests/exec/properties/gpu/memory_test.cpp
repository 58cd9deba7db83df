// Memory on a GPU stays where the first steps have brought it.

#include <ATen/ATen.h>

#include <algorithm>

#include "exec/devices/load_accelerator.h"
#include "planner/what_if/plan_changes.h"
#include "tests/exec/properties/gpu/gpu_test.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

class GpuMemoryTest : public GpuTest {};

// Returns what tensors hold. Blocks that several streams have used come back when the allocator is
// next asked for one.
std::int64_t allocated() {
  (void)at::empty({1}, at::TensorOptions(at::Device(at::kCUDA, 0)));
  return load_accelerator().memory(0).allocated;
}

Plan make_plan(const ModelProfile& structure, ScheduleKind kind) {
  return make_small_plan(structure,
                         {.schedule = kind, .micro_batches = 6, .cuts = {{4}}, .owned = {6}});
}

TEST_F(GpuMemoryTest, IsConstantOverSteps) {
  for (const ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZbH1}) {
    frazil::Run run(make_vit(small_config()), {}, 7, 2, {.devices = streams()});
    run.transition_to(make_plan(run.structure(), kind));
    std::vector<std::int64_t> held;
    for (Step step = 0; step < 40; ++step) {
      run.step(step, 1e-2, small_micro_batches(step, 6));
      held.push_back(allocated());
    }
    const auto begin = held.begin() + 5;
    EXPECT_LE(*std::max_element(begin + 20, held.end()), *std::max_element(begin, begin + 15));
  }
}

// The run is on one stream, for cuBLAS keeps its workspace by thread and stream.
TEST_F(GpuMemoryTest, OfARunIsGivenBack) {
  const auto run_some = [] {
    frazil::Run run(make_vit(small_config()), {}, 7, 1, {.devices = streams()});
    run.transition_to(make_small_plan(run.structure(), {}));
    for (Step step = 0; step < 3; ++step) run.step(step, 1e-2, small_micro_batches(step, 6));
  };
  run_some();
  const std::int64_t before = allocated();
  for (int i = 0; i < 5; ++i) run_some();
  EXPECT_EQ(allocated(), before);
}

// Memory is measured as on cores: what does not depend on the kernels is equal to the byte.
TEST_F(GpuMemoryTest, IsMeasuredAsOnCores) {
  const auto measure = [](const DeviceChoice& choice) {
    frazil::Run run(make_vit(small_config()), {}, 7, 2, {.devices = choice});
    run.transition_to(make_plan(run.structure(), ScheduleKind::kOneForwardOneBackward));
    run.step(0, 1e-2, small_micro_batches(0, 6));
    run.measure({.memory = true});
    return run.step(1, 1e-2, small_micro_batches(1, 6)).memory;
  };
  const std::vector<MeasuredMemory> gpu = measure(streams());
  const std::vector<MeasuredMemory> core = measure({});
  ASSERT_EQ(gpu.size(), core.size());
  for (std::size_t d = 0; d < gpu.size(); ++d) {
    const auto held = [&](const MeasuredMemory& memory, MemoryKind kind) {
      return memory.peak[static_cast<std::size_t>(kind)].count;
    };
    for (const MemoryKind kind :
         {MemoryKind::kParameters, MemoryKind::kGradients, MemoryKind::kOptimizer}) {
      EXPECT_EQ(held(gpu[d], kind), held(core[d], kind)) << memory_kind_name(kind);
    }
    EXPECT_GT(held(gpu[d], MemoryKind::kStash), 0);
    EXPECT_EQ(gpu[d].curve.back().total.count, held(gpu[d], MemoryKind::kParameters) +
                                                   held(gpu[d], MemoryKind::kOptimizer) +
                                                   held(gpu[d], MemoryKind::kGradients));
  }
}

}  // namespace
}  // namespace frazil
