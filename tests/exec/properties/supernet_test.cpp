// One operation of a cell runs in a step, and some steps move architecture parameters alone: under
// every plan the same, as each device draws for itself.

#include <gtest/gtest.h>

#include "tests/exec/models/model_checks.h"

namespace frazil {
namespace {

TEST(Supernet, OnOneDeviceHasTheBitsOfAPlainProgram) {
  expect_plain_bits(supernet_model());
  expect_plain_bits(mobilenet_model());
}

TEST(Supernet, UnderMasksHasTheBitsOfAPlainProgram) {
  for (const std::string mask : {"011", "101"}) expect_plain_bits(supernet_model(), mask);
}

// The first of the two steps moves weights, the second the architecture.
TEST(Supernet, HasTheBitsOfOneDeviceUnderEveryPlan) {
  EXPECT_GE(expect_bits_of_one_device(supernet_model(), clipped_adamw()), 43);
}

TEST(Supernet, AsAStudentHasTheBitsOfAPlainProgramAndOfOneDeviceUnderEveryPlan) {
  expect_plain_bits(distilled_supernet_model());
  expect_plain_bits(distilled_supernet_model(), "0101");
  SupernetConfig shallow = small_supernet();
  shallow.shape.cells = {1, 1};
  EXPECT_GE(expect_bits_of_one_device(distilled_supernet_model(shallow), clipped_adamw()), 57);
}

// Freezing a block leaves the draws of the others as they are.
TEST(Supernet, AsAStudentTeachesABlockTheSameAloneAndAmongOthers) {
  const TestModel model = distilled_supernet_model();
  const auto train = [&](const std::string& mask, int devices) {
    frazil::Run run(model.spec, momentum_sgd(), 11, devices);
    run.transition_to(make_plan(model, {.devices = devices, .mask = mask}));
    for (Step step = 0; step < 3; ++step) {
      run.step(step, 1e-2, model.samples({.seed = static_cast<std::uint64_t>(step)}));
    }
    return run.gather_states();
  };
  const std::vector<LayerState> together = train(model.mask, 3);
  for (const std::string mask : {"1001", "0101", "0011"}) {
    SCOPED_TRACE(mask);
    const std::vector<LayerState> alone = train(mask, 1);
    for (std::size_t l = 0; l < alone.size(); ++l) {
      if (mask[model.spec.layers[l].block.index()] == '0') continue;
      EXPECT_EQ(hash_state(alone[l]), hash_state(together[l])) << model.spec.layers[l].name;
    }
  }
}

}  // namespace
}  // namespace frazil
