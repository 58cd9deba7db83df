// A fault on a GPU names its place, and the other streams end.

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "exec/devices/step_fault.h"
#include "profiles/error.h"
#include "tests/exec/properties/gpu/gpu_test.h"
#include "tests/exec/support/rank_failures.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

class GpuFaults : public GpuTest {};

// Lets the third layer of the first stage do this before its own work.
ModelSpec with_fault(const std::function<void(const at::Tensor&)>& fault) {
  ModelSpec model = make_vit(small_config());
  const auto forward = model.layers[2].forward;
  model.layers[2].forward = [forward, fault](const LayerCall& call) {
    fault(call.inputs.at(0));
    return forward(call);
  };
  return model;
}

void step_once(const ModelSpec& model, Duration deadline) {
  frazil::Run run(model, {}, 7, 2, {.deadline = deadline, .devices = streams()});
  run.transition_to(
      make_small_plan(run.structure(), {.micro_batches = 2, .cuts = {{4}}, .owned = {2}}));
  run.step(0, 1e-2, small_micro_batches(0, 2));
}

TEST_F(GpuFaults, AFailingLayerIsNamedAndTheOtherStreamEnds) {
  const ModelSpec model =
      with_fault([](const at::Tensor&) { throw std::runtime_error("no kernel for it"); });
  EXPECT_EQ(failure_of([&] { step_once(model, std::chrono::minutes(1)); }).sentence,
            "rank 0, step 0, action 0F0: no kernel for it");
  // The streams serve the next run.
  EXPECT_EQ(
      failure_of([] { step_once(make_vit(small_config()), std::chrono::minutes(1)); }).sentence,
      "");
}

TEST_F(GpuFaults, MemoryThatThereIsNotIsOutOfMemory) {
  const ModelSpec model = with_fault(
      [](const at::Tensor& input) { (void)at::empty({std::int64_t{1} << 48}, input.options()); });
  EXPECT_THROW(step_once(model, std::chrono::minutes(1)), OutOfMemory);
}

TEST_F(GpuFaults, WorkThatDoesNotEndInTimeIsAtTheDeadline) {
  const ModelSpec model = with_fault([](const at::Tensor& input) {
    at::Tensor x = at::ones({8192, 8192}, input.options().requires_grad(false));
    const c10::NoGradGuard no_grad;
    for (int i = 0; i < 50; ++i) x = at::matmul(x, x);
  });
  EXPECT_THROW(step_once(model, std::chrono::milliseconds(20)), PeerLost);
}

}  // namespace
}  // namespace frazil
