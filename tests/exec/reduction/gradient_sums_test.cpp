#include "exec/reduction/gradient_sums.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "exec/communication/in_process_communicator.h"
#include "tests/exec/models/model_plans.h"

namespace frazil {
namespace {

// An optimizer may work in place, so no two uses may share a tensor.
TEST(GradientSums, GivesEachUseOfATiedParameterATensorOfItsOwn) {
  const TestModel model = decoder_model();
  const Plan plan = make_plan(model, {.micro_batches = 2});
  const StepProgram program = make_program(plan, make_timed_structure(model.spec), 1, false);
  const LayerId first{0};
  const LayerId last{model.layers() - 1};
  ASSERT_EQ(program.tied.size(), 1U);
  ASSERT_EQ(program.tied[0].layers, (std::vector<LayerId>{first, last}));
  DeviceState state;
  for (int l = 0; l < model.layers(); ++l) {
    state[LayerId{l}] = make_initial_state(model.spec, LayerId{l}, 1);
  }
  const auto communicators = make_in_process_communicators(1);
  MemoryAccount memory;
  GradientSums sums(program, DeviceId{0}, state, *communicators[0], memory);
  sums.begin(0);
  for (int l = 0; l < model.layers(); ++l) {
    for (int m = 0; m < 2; ++m) {
      Tensors gradients;
      for (const at::Tensor& parameter : state[LayerId{l}].parameters) {
        gradients.push_back(at::ones_like(parameter));
      }
      sums.add(LayerId{l}, MicroBatchId{m}, std::move(gradients));
    }
  }
  sums.reduce();
  at::Tensor one = sums.take(first).at(0);
  const at::Tensor other = sums.take(last).at(0);
  one.zero_();
  EXPECT_TRUE(at::equal(other, at::full_like(other, 4))) << "two micro-batches at two uses";
}

}  // namespace
}  // namespace frazil
