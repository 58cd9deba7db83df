// One table lies on the first and on the last stage.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/models/model_checks.h"

namespace frazil {
namespace {

constexpr std::uint64_t kDecoderSeed = 11;
constexpr double kRate = 0.1;

OptimizerConfig plain_descent(double clip_norm = 0) {
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerConfig::Kind::kSgd;
  optimizer.momentum = 0;
  optimizer.weight_decay = 0;
  optimizer.clip_norm = clip_norm;
  return optimizer;
}

std::vector<Samples> samples_of(const TestModel& model, Step step) {
  return model.samples({.seed = static_cast<std::uint64_t>(step) + 1});
}

const Tensors& weights_on(Run& run, int device, int layer) {
  return run.pool().states().at(static_cast<std::size_t>(device)).at(LayerId{layer}).parameters;
}

void expect_close(Run& run, int device, const LayerTensors& expected) {
  for (const auto& [layer, state] : run.pool().states().at(static_cast<std::size_t>(device))) {
    for (std::size_t p = 0; p < state.parameters.size(); ++p) {
      EXPECT_TRUE(at::allclose(state.parameters[p], expected[layer.index()][p], 1e-6, 1e-6))
          << run.model().layers[layer.index()].parameters[p].name;
    }
  }
}

// Each use's gradients are added over micro-batches, then the uses.
TEST(Decoder, OnOneDeviceHasTheBitsOfAPlainProgramWithATablePerUse) {
  expect_plain_bits(decoder_model());
}

TEST(Decoder, UnderMasksHasTheBitsOfAPlainProgram) {
  for (const std::string mask : {"0111", "0011", "1011", "1101", "0101", "1001", "0001"}) {
    expect_plain_bits(decoder_model(), mask);
  }
}

// Autograd adds the uses within each micro-batch: other sums, so equal up to rounding.
TEST(Decoder, HasTheWeightsOfAPlainProgramWithOneTable) {
  const TestModel model = decoder_model();
  LayerTensors weights = start_values(model.spec, kDecoderSeed, /*shares=*/true);
  frazil::Run run(model.spec, plain_descent(), kDecoderSeed, 2);
  run.transition_to(make_plan(model, {.devices = 2}));
  for (Step step = 0; step < 2; ++step) {
    const std::vector<Samples> micro_batches = samples_of(model, step);
    run.step(step, kRate, micro_batches);
    descend(weights,
            differentiate_step(model.spec, weights, micro_batches, kDecoderSeed, step).gradients,
            kRate);
  }
  expect_close(run, 0, weights);
  expect_close(run, 1, weights);
}

TEST(Decoder, HasTheBitsOfOneDeviceUnderEveryPlan) {
  EXPECT_GE(expect_bits_of_one_device(decoder_model(), clipped_adamw()), 47);
}

TEST(Decoder, KeepsTheCopiesOfItsTableEqual) {
  const TestModel model = decoder_model();
  const int last = model.layers() - 1;
  frazil::Run run(model.spec, clipped_adamw(), kDecoderSeed, 4);
  run.transition_to(make_plan(model, {.devices = 2, .replicas = 2}));
  const at::Tensor before = weights_on(run, 0, 0).at(0).detach().clone();
  for (Step step = 0; step < 2; ++step) run.step(step, 1e-2, samples_of(model, step));
  const at::Tensor& table = weights_on(run, 0, 0).at(0);
  EXPECT_FALSE(at::equal(table, before));
  EXPECT_TRUE(at::equal(table, weights_on(run, 1, last).at(0)));
  EXPECT_TRUE(at::equal(table, weights_on(run, 2, 0).at(0)));
  EXPECT_TRUE(at::equal(table, weights_on(run, 3, last).at(0)));
}

// The first block is frozen, but its table has a second use in the head, which trains.
TEST(Decoder, TrainsATableOfAFrozenBlockThatIsUsedByAnActiveOne) {
  const TestModel model = decoder_model();
  frazil::Run run(model.spec, plain_descent(), kDecoderSeed, 2);
  run.transition_to(make_plan(model, {.devices = 2, .mask = "0111"}));
  const LayerTensors before = start_values(model.spec, kDecoderSeed);
  run.step(0, kRate, samples_of(model, 0));
  EXPECT_FALSE(at::equal(weights_on(run, 0, 0).at(0), before[0].at(0)));
  EXPECT_TRUE(at::equal(weights_on(run, 0, 1).at(0), before[1].at(0))) << "positions are frozen";
  EXPECT_TRUE(at::equal(weights_on(run, 0, 0).at(0), weights_on(run, 1, model.layers() - 1).at(0)));
}

TEST(Decoder, HasTheBitsOfOneDeviceUnderEveryMask) {
  const TestModel model = decoder_model();
  for (const std::string mask : {"0111", "0011", "0001", "1011", "1101", "1001", "0101"}) {
    const auto train = [&](PlanForm form) {
      form.mask = mask;
      return train_two_steps(model, clipped_adamw(), form);
    };
    SCOPED_TRACE(mask);
    const std::uint64_t expected = train({});
    EXPECT_EQ(train({.devices = 2}), expected);
    EXPECT_EQ(train({.schedule = ScheduleKind::kZbH1, .devices = 3}), expected);
    EXPECT_EQ(train({.schedule = ScheduleKind::kZbV, .devices = 2, .chunks = 2}), expected);
    EXPECT_EQ(train({.schedule = ScheduleKind::kChimera, .devices = 2}), expected);
    EXPECT_EQ(train({.devices = 2, .replicas = 2}), expected);
  }
}

// One replica holds both uses on one device, the other replica on two.
TEST(Decoder, HasTheBitsOfOneDeviceWhereReplicasDiffer) {
  const TestModel model = decoder_model();
  std::vector<std::uint64_t> hashes;
  for (const bool differ : {false, true}) {
    Plan plan = make_plan(model, {.micro_batches = 5});
    if (differ) {
      plan.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{1}}};
      plan.pipelines.push_back(make_pipeline(model.layers(), {LayerId{3}},
                                             {DeviceId{1}, DeviceId{2}},
                                             {MicroBatchId{2}, MicroBatchId{4}}));
    }
    frazil::Run run(model.spec, clipped_adamw(), kDecoderSeed, 3);
    run.transition_to(plan);
    for (Step step = 0; step < 2; ++step) {
      run.step(step, 1e-2,
               model.samples({.seed = static_cast<std::uint64_t>(step), .micro_batches = 5}));
    }
    hashes.push_back(run.weight_hash());
  }
  EXPECT_EQ(hashes[1], hashes[0]);
}

// The scale is min(1, clip_norm / (norm + 1e-6)), with the table's sum of both uses counted once.
TEST(Decoder, CountsItsTableOnceInTheNorm) {
  const TestModel model = decoder_model();
  const std::vector<Samples> micro_batches = samples_of(model, 0);
  LayerTensors weights = start_values(model.spec, kDecoderSeed, /*shares=*/true);
  LayerTensors gradients =
      differentiate_step(model.spec, weights, micro_batches, kDecoderSeed, 0).gradients;
  double squares = 0;
  for (std::size_t l = 0; l + 1 < gradients.size(); ++l) {
    for (const at::Tensor& gradient : gradients[l]) {
      squares += gradient.to(at::kDouble).square().sum().item<double>();
    }
  }
  const double table = gradients[0].at(0).to(at::kDouble).square().sum().item<double>();
  EXPECT_GT(table, 0.05 * squares) << "counting it twice must show";
  const double clip_norm = 0.5 * std::sqrt(squares);
  const double scale = clip_norm / (std::sqrt(squares) + 1e-6);
  descend(weights, gradients, kRate * scale);
  for (const int devices : {1, 2, 3}) {
    frazil::Run run(model.spec, plain_descent(clip_norm), kDecoderSeed, devices);
    run.transition_to(make_plan(model, {.devices = devices}));
    run.step(0, kRate, micro_batches);
    for (int d = 0; d < devices; ++d) expect_close(run, d, weights);
  }
}

}  // namespace
}  // namespace frazil
