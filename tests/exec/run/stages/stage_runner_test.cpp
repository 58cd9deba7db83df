// Cutting the model into layers, stages and micro-batches is transparent: gradients and loss are
// those of plain autograd over the whole model and the whole batch, up to the rounding of products
// over all rows at once. Bit for bit they are those of whole graphs per micro-batch:
// plain_vit_test.cpp.

#include "exec/run/stages/stage_runner.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr std::uint64_t kSeed = 7;

// This optimizer at rate 1 changes the weights by minus the gradient.
OptimizerConfig plain_descent() {
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerConfig::Kind::kSgd;
  optimizer.momentum = 0;
  optimizer.weight_decay = 0;
  return optimizer;
}

struct StepOutcome {
  double loss = 0;
  std::vector<Tensors> gradients;  // by layer
};

// Differentiates with one graph, one loss, one backward.
StepOutcome differentiate_whole(const std::vector<Samples>& micro_batches) {
  const ModelSpec model = make_vit(small_config());
  Tensors images;
  Tensors labels;
  for (const Samples& samples : micro_batches) {
    images.push_back(samples.inputs[0]);
    labels.push_back(samples.labels);
  }
  at::Tensor x = at::cat(images);
  Tensors parameters;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Tensors own = initial_parameters(model, LayerId{l}, kSeed);
    for (const at::Tensor& parameter : own) parameter.set_requires_grad(true);
    parameters.insert(parameters.end(), own.begin(), own.end());
    x = model.layers[l].forward({LayerId{l}, own, {x}, {}, true}).at(0);
  }
  const at::Tensor loss = at::cross_entropy_loss(x, at::cat(labels));
  const Tensors gradients = torch::autograd::grad({loss}, parameters);
  StepOutcome outcome{loss.item<double>(), {}};
  auto next = gradients.begin();
  for (const LayerSpec& layer : model.layers) {
    const auto count = static_cast<std::ptrdiff_t>(layer.parameters.size());
    outcome.gradients.emplace_back(next, next + count);
    next += count;
  }
  return outcome;
}

StepOutcome step_once(const PlanShape& shape, const std::vector<Samples>& micro_batches) {
  const ModelSpec model = make_vit(small_config());
  Run run(model, plain_descent(), kSeed, devices_of(shape));
  run.transition_to(make_small_plan(run.structure(), shape));
  StepOutcome outcome{run.step(0, 1.0, micro_batches).loss, {}};
  const std::vector<const LayerState*> states = first_holders(run.pool().states(), kSmallLayers);
  for (std::size_t l = 0; l < states.size(); ++l) {
    const Tensors before = initial_parameters(model, LayerId{l}, kSeed);
    Tensors gradients;
    for (std::size_t p = 0; p < before.size(); ++p) {
      gradients.push_back(before[p] - states[l]->parameters[p].detach());
    }
    outcome.gradients.push_back(gradients);
  }
  return outcome;
}

// Weights are about 1 and fp32, so their change is known to 1e-7.
bool is_close(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) {
                      return at::allclose(x, y, /*rtol=*/1e-5, /*atol=*/1e-6);
                    });
}

void expect_close(const StepOutcome& outcome, const StepOutcome& expected) {
  EXPECT_NEAR(outcome.loss, expected.loss, 1e-5);
  ASSERT_EQ(outcome.gradients.size(), expected.gradients.size());
  for (std::size_t l = 0; l < expected.gradients.size(); ++l) {
    EXPECT_TRUE(is_close(outcome.gradients[l], expected.gradients[l])) << "layer " << l;
  }
}

TEST(Transparency, OneDeviceHasTheGradientsOfTheWholeGraph) {
  const std::vector<Samples> micro_batches = small_micro_batches(0, 6);
  expect_close(step_once({}, micro_batches), differentiate_whole(micro_batches));
}

TEST(Transparency, TwoStagesHaveTheGradientsOfTheWholeGraph) {
  const std::vector<Samples> micro_batches = small_micro_batches(1, 6);
  const StepOutcome expected = differentiate_whole(micro_batches);
  expect_close(step_once({.cuts = {{3}}}, micro_batches), expected);
  expect_close(step_once({.cuts = {{4}, {}}, .owned = {2, 4}}, micro_batches), expected);
}

// Samples weigh alike, whatever the size of their micro-batch.
TEST(Transparency, AShortLastMicroBatchWeighsByItsSamples) {
  const std::vector<Samples> micro_batches = small_micro_batches(2, 6, /*short_by=*/2);
  expect_close(step_once({.cuts = {{5}}}, micro_batches), differentiate_whole(micro_batches));
}

TEST(Transparency, FreezingABlockLeavesTheOtherGradientsAsTheyAre) {
  const std::vector<Samples> micro_batches = small_micro_batches(3, 6);
  StepOutcome expected = differentiate_whole(micro_batches);
  // The mask freezes blocks 0 and 2: layers 0, 3 and 4.
  for (const std::size_t layer : {0U, 3U, 4U}) {
    for (at::Tensor& gradient : expected.gradients[layer]) gradient = at::zeros_like(gradient);
  }
  expect_close(step_once({.cuts = {{4}}, .mask = "01011"}, micro_batches), expected);
}

std::uint64_t hash_after_four_steps(const Measurement& measurement) {
  const PlanShape shape{.cuts = {{3}}};
  Run run(make_vit(small_config()), {}, kSeed, devices_of(shape));
  run.transition_to(make_small_plan(run.structure(), shape));
  run.measure(measurement);
  for (Step step = 0; step < 4; ++step) run.step(step, 1e-2, small_micro_batches(step, 6));
  return run.weight_hash();
}

TEST(Measurement, NeverChangesABit) {
  const std::uint64_t expected = hash_after_four_steps({});
  EXPECT_EQ(hash_after_four_steps({.layers = true}), expected);
  EXPECT_EQ(hash_after_four_steps({.split_backward = true}), expected);
  EXPECT_EQ(hash_after_four_steps({.layers = true, .split_backward = true}), expected);
  EXPECT_EQ(hash_after_four_steps({.slow_layer = 2, .slow_percent = 50}), expected);
  EXPECT_EQ(hash_after_four_steps({.layers = true, .slow_percent = 50, .slow_device = 1}),
            expected);
}

TEST(Measurement, HasASampleOfEveryPhaseOfEveryLayer) {
  const PlanShape shape{.cuts = {{3}}};
  frazil::Run run(make_vit(small_config()), {}, kSeed, devices_of(shape));
  run.transition_to(make_small_plan(run.structure(), shape));
  run.measure({.layers = true});
  run.step(0, 1e-2, small_micro_batches(0, 6));
  std::map<std::pair<int, LayerPhase>, int> counts;
  for (const LayerSample& sample : run.take_layer_samples()) {
    ++counts[{sample.layer.value, sample.phase}];
    EXPECT_EQ(sample.samples, sample.phase == LayerPhase::kUpdate ? 0 : kSmallMicroBatch);
    EXPECT_GT(sample.duration.count(), 0);
    EXPECT_EQ(sample.device, DeviceId{sample.layer.value < 3 ? 0 : 1});
  }
  std::map<std::pair<int, LayerPhase>, int> expected{{{kSmallLayers - 1, LayerPhase::kLoss}, 6}};
  for (int l = 0; l < kSmallLayers; ++l) {
    expected[{l, LayerPhase::kForward}] = 6;
    expected[{l, LayerPhase::kBackward}] = 6;
    expected[{l, LayerPhase::kUpdate}] = 1;
  }
  EXPECT_EQ(counts, expected);
  EXPECT_TRUE(run.take_layer_samples().empty());
}

// Known of every step, whether its spans are kept or not.
TEST(Measurement, HasTheComputeOfEveryDeviceWhichIsThatOfItsSpans) {
  const PlanShape shape{.cuts = {{3}}};
  frazil::Run run(make_vit(small_config()), {}, kSeed, devices_of(shape));
  run.transition_to(make_small_plan(run.structure(), shape));
  for (const bool records : {true, false}) {
    const StepResult result = run.step(records ? 0 : 1, 1e-2, small_micro_batches(0, 6), records);
    ASSERT_EQ(result.compute.size(), 2U);
    Timeline timeline{.devices = 2, .spans = result.spans};
    for (const ComputeTime& compute : result.compute) {
      EXPECT_GT(compute.time, kNoTime);
      if (records) {
        EXPECT_EQ(compute.time, busy(timeline, compute.device));
      }
    }
  }
}

// A runner works by itself on layers in the middle of the model.
TEST(StageRunner, KeepsAMicroBatchFromItsForwardToItsBackward) {
  const ModelSpec model = make_vit(small_config());
  const ModelProfile structure = make_structure(model, 0);
  const Activity activity = find_activity(structure, FreezeMask::all_active(kSmallBlocks));
  DeviceState state;
  for (const int l : {3, 4}) state[LayerId{l}] = make_initial_state(model, LayerId{l}, kSeed);
  std::vector<std::pair<LayerId, MicroBatchId>> added;
  const auto add = [&](LayerId layer, MicroBatchId micro_batch, const Tensors& gradients) {
    EXPECT_EQ(gradients.size(), state.at(layer).parameters.size());
    added.emplace_back(layer, micro_batch);
  };
  Recorder recorder(DeviceId{0}, {});
  const Measurement measurement;
  StageRunner runner({model, activity, state, recorder, measurement},
                     {.layers = {{LayerId{3}, LayerId{4}}}}, add);
  const Samples samples = small_micro_batches(0, 1).front();
  const StageRunner::Data data{.samples = &samples, .key = {}};
  // Edge 2 enters the stage, edge 4 leaves it.
  const at::Tensor input = at::ones({samples.count(), 17, 32});
  const at::Tensor output = runner.forward(MicroBatchId{0}, data, {{2, {input}}}).outputs.at(4)[0];
  EXPECT_FALSE(output.requires_grad());
  EXPECT_EQ(runner.in_flight(), 1U);
  (void)runner.forward(MicroBatchId{1}, data, {{2, {input}}});
  EXPECT_EQ(runner.in_flight(), 2U);
  const EdgeTensors gradient{{4, {at::ones_like(output)}}};
  const at::Tensor input_gradient = runner.backward(MicroBatchId{1}, gradient).at(2)[0];
  EXPECT_EQ(input_gradient.sizes(), input.sizes());
  EXPECT_EQ(runner.in_flight(), 1U);
  const at::Tensor split_gradient = runner.backward_apart(MicroBatchId{0}, gradient).at(2)[0];
  EXPECT_TRUE(at::equal(split_gradient, input_gradient));
  EXPECT_EQ(runner.in_flight(), 0U);
  const std::vector<std::pair<LayerId, MicroBatchId>> expected{{LayerId{4}, MicroBatchId{1}},
                                                               {LayerId{3}, MicroBatchId{1}},
                                                               {LayerId{4}, MicroBatchId{0}},
                                                               {LayerId{3}, MicroBatchId{0}}};
  EXPECT_EQ(added, expected);
  EXPECT_THROW((void)runner.backward(MicroBatchId{0}, gradient), std::logic_error);
}

}  // namespace
}  // namespace frazil
