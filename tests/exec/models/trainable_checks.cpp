#include "tests/exec/models/trainable_checks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/exec/models/model_plans.h"
#include "tests/exec/support/sent_messages.h"

namespace frazil {
namespace {

// Of a model's parameters.
struct Trainable {
  std::int64_t bytes = 0;
  std::int64_t bytes_of_others = 0;
  std::size_t layers = 0;  // that have some
};

Trainable count_trainable(const ModelSpec& model) {
  Trainable trainable;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      std::int64_t floats = 1;
      for (const std::int64_t extent : parameter.shape) floats *= extent;
      (parameter.trainable ? trainable.bytes : trainable.bytes_of_others) += 4 * floats;
    }
    trainable.layers += frazil::count_trainable(layer) > 0 ? 1 : 0;
  }
  return trainable;
}

}  // namespace

std::size_t count_trainable(const LayerSpec& layer) {
  return layer.parameters.size() - find_untrainable(layer).size();
}

void expect_state_of_trainable_alone(const Run& run, std::uint64_t seed, const FreezeMask& mask) {
  const Activity activity = find_activity(run.structure(), mask);
  const LayerTensors before = start_values(run.model(), seed);
  for (const DeviceState& device : run.pool().states()) {
    for (const auto& [layer, state] : device) {
      const LayerSpec& spec = run.model().layers[layer.index()];
      SCOPED_TRACE(spec.name);
      const LayerActivity& own = activity.layers[layer.index()];
      EXPECT_EQ(own.active, count_trainable(spec) > 0 && mask.is_active(spec.block));
      EXPECT_EQ(state.first_moment.size(), own.weight_gradient ? count_trainable(spec) : 0U);
      EXPECT_EQ(state.second_moment.size(), state.first_moment.size());
      for (std::size_t p = 0; p < spec.parameters.size(); ++p) {
        const bool trains = own.active && spec.parameters[p].trainable;
        EXPECT_EQ(state.parameters[p].requires_grad(), trains) << spec.parameters[p].name;
        EXPECT_EQ(at::equal(state.parameters[p], before[layer.index()][p]), !trains)
            << spec.parameters[p].name;
      }
    }
  }
}

void expect_reductions_of_trainable_alone(const TestModel& model) {
  const ModelProfile profile = make_timed_structure(model.spec);
  const Trainable trainable = count_trainable(model.spec);
  EXPECT_GT(trainable.bytes_of_others, 0);
  for (const int replicas : {2, 4}) {
    SCOPED_TRACE(model.spec.name + ", " + std::to_string(replicas) + " replicas");
    const Plan plan = make_plan(model, {.micro_batches = 4, .replicas = replicas});
    const StepProgram program = make_program(plan, profile, replicas, false);
    std::size_t reduced = 0;
    for (const std::vector<LayerId>& group : program.topology.groups) reduced += group.size();
    EXPECT_EQ(reduced, trainable.layers);
    EXPECT_EQ(count_reductions(send_step(model, program, replicas, false)).bytes,
              2 * (replicas - 1) * trainable.bytes);
  }
}

}  // namespace frazil
