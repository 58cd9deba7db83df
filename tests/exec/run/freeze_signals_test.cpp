// Signals are compared with a computation of their own, and with the same run under other plans.

#include "exec/run/freeze_signals.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "exec/run/run.h"
#include "planner/freezing/plasticity.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr Step kSteps = 4;
// The rate is so large that what floats round off the weights does not count.
constexpr double kRate = 0.5;

// This optimizer lets a step's gradient be read off the weights: before - after = rate x gradient.
OptimizerConfig plain_sgd() {
  OptimizerConfig sgd;
  sgd.kind = OptimizerConfig::Kind::kSgd;
  sgd.weight_decay = 0;
  sgd.momentum = 0;
  return sgd;
}

std::vector<Tensors> copy_weights(Run& run) {
  std::vector<Tensors> weights;
  for (const LayerState* state : first_holders(run.pool().states(), kSmallLayers)) {
    Tensors& own = weights.emplace_back();
    for (const at::Tensor& parameter : state->parameters) own.push_back(parameter.detach().clone());
  }
  return weights;
}

Samples probe() { return small_micro_batches(99, 1).front(); }

std::unique_ptr<Run> make_run(const PlanShape& shape, const OptimizerConfig& optimizer) {
  auto run = std::make_unique<Run>(make_vit(small_config()), optimizer, 7, devices_of(shape));
  run->transition_to(make_small_plan(run->structure(), shape));
  run->measure({.gradient_squares = true, .gradient_sums = true});
  return run;
}

StepResult take_step(Run& run, Step step, double rate = kRate) {
  return run.step(step, rate, small_micro_batches(step, 6));
}

// Returns the bits of all that is measured of a run.
std::vector<std::uint64_t> measure_run(const PlanShape& shape) {
  OptimizerConfig adamw;
  adamw.clip_norm = 0.5;
  const auto run = make_run(shape, adamw);
  std::vector<std::uint64_t> bits;
  const auto add = [&](const std::vector<double>& numbers) {
    for (const double number : numbers) bits.push_back(std::bit_cast<std::uint64_t>(number));
  };
  const Sketches first = run->sketch_blocks(probe());
  for (Step step = 0; step < kSteps; ++step) {
    add(gradient_norms(run->model(), take_step(*run, step, 1e-2).gradient_squares));
    add(run->interval_gradients());
    add(compare_sketches(run->sketch_blocks(probe()), first));
    if (step == 1) run->clear_gradient_sums();
  }
  return bits;
}

TEST(FreezeSignals, HaveTheSameBitsUnderEveryPlan) {
  const std::vector<std::uint64_t> expected = measure_run({});
  EXPECT_EQ(expected.size(), 3U * kSmallBlocks * kSteps);
  for (const PlanShape& shape :
       std::vector<PlanShape>{{.cuts = {{4}}},
                              {.schedule = ScheduleKind::kZbH1, .cuts = {{2, 5}}},
                              {.cuts = {{}, {}}, .owned = {3, 3}},
                              {.cuts = {{5}, {}}, .owned = {4, 2}}}) {
    EXPECT_EQ(measure_run(shape), expected);
  }
}

TEST(FreezeSignals, AreNormsOfTheGradientsThatMoveTheWeights) {
  const auto run = make_run({.cuts = {{4}}}, plain_sgd());
  std::vector<Tensors> sums;  // of the gradients, as the weights show them
  for (Step step = 0; step < kSteps; ++step) {
    const std::vector<Tensors> before = copy_weights(*run);
    const std::vector<double> norms =
        gradient_norms(run->model(), take_step(*run, step).gradient_squares);
    const std::vector<Tensors> after = copy_weights(*run);
    std::vector<double> expected(kSmallBlocks);
    if (sums.empty()) sums.resize(before.size());
    for (std::size_t l = 0; l < before.size(); ++l) {
      for (std::size_t p = 0; p < before[l].size(); ++p) {
        const at::Tensor gradient =
            (before[l][p].to(at::kDouble) - after[l][p].to(at::kDouble)) / kRate;
        expected[run->model().layers[l].block.index()] += gradient.square().sum().item<double>();
        if (step == 0) {
          sums[l].push_back(gradient);
        } else {
          sums[l][p] += gradient;
        }
      }
    }
    for (int b = 0; b < kSmallBlocks; ++b) {
      const auto block = static_cast<std::size_t>(b);
      EXPECT_GT(norms[block], 0);
      EXPECT_NEAR(norms[block], std::sqrt(expected[block]), 1e-3 * norms[block]) << block;
    }
  }
  std::vector<double> expected(kSmallBlocks);
  for (std::size_t l = 0; l < sums.size(); ++l) {
    for (const at::Tensor& sum : sums[l]) {
      expected[run->model().layers[l].block.index()] += sum.abs().sum().item<double>();
    }
  }
  const std::vector<double> found = run->interval_gradients();
  for (std::size_t b = 0; b < found.size(); ++b) {
    EXPECT_NEAR(found[b], expected[b], 1e-3 * expected[b]) << b;
  }
}

TEST(FreezeSignals, SumsMoveWithTheirLayersAndEndWhenTheyFreeze) {
  const auto moving = make_run({.cuts = {{4}}}, {});
  const auto staying = make_run({.cuts = {{4}}}, {});
  for (frazil::Run* run : {moving.get(), staying.get()}) (void)take_step(*run, 0);
  PlanShape other{.cuts = {{2}}};
  moving->transition_to(make_small_plan(moving->structure(), other));
  for (frazil::Run* run : {moving.get(), staying.get()}) (void)take_step(*run, 1);
  EXPECT_EQ(moving->interval_gradients(), staying->interval_gradients());
  other.mask = "10111";
  moving->transition_to(make_small_plan(moving->structure(), other));
  EXPECT_EQ(moving->interval_gradients()[1], 0);
  EXPECT_GT(moving->interval_gradients()[0], 0);
}

TEST(FreezeSignals, PlasticityOfAFrozenBlockIsZeroAboveNothing) {
  PlanShape shape;
  shape.mask = "00111";
  const auto run = make_run(shape, {});
  const Sketches before = run->sketch_blocks(probe());
  ASSERT_EQ(before.size(), 5U);
  EXPECT_EQ(before[0].size(), static_cast<std::size_t>(kSmallMicroBatch * kSmallMicroBatch));
  (void)take_step(*run, 0);
  const std::vector<double> changes = compare_sketches(run->sketch_blocks(probe()), before);
  EXPECT_EQ(changes[0], 0);
  EXPECT_EQ(changes[1], 0);
  for (std::size_t b = 2; b < changes.size(); ++b) EXPECT_GT(changes[b], 0) << b;
}

// The rows are made by hand, from the outputs themselves.
TEST(FreezeSignals, SketchIsTheGramMatrixOfABlocksLastLayer) {
  const auto run = make_run({}, {});
  const Sketches sketches = run->sketch_blocks(probe());
  const std::vector<Tensors> outputs = run->outputs(probe());
  const at::Tensor rows = outputs[2].at(0).to(at::kDouble).reshape({kSmallMicroBatch, -1});
  const at::Tensor gram = rows.matmul(rows.t());
  const at::Tensor expected = gram / gram.norm(2, {1}, true);
  for (int i = 0; i < kSmallMicroBatch * kSmallMicroBatch; ++i) {
    EXPECT_NEAR(sketches[1][static_cast<std::size_t>(i)], expected.view(-1)[i].item<double>(),
                1e-12);
  }
}

TEST(FreezeSignals, RateFactorsScaleTheStepOfTheirBlocks) {
  const auto run = make_run({.cuts = {{4}}}, plain_sgd());
  const auto plain = make_run({}, plain_sgd());
  const std::vector<Tensors> before = copy_weights(*run);
  const std::vector<double> factors{0, 0.5, 1, 2, 1};
  (void)run->step(0, kRate, small_micro_batches(0, 6), false, factors);
  (void)take_step(*plain, 0);
  const std::vector<Tensors> after = copy_weights(*run);
  const std::vector<Tensors> whole = copy_weights(*plain);
  for (std::size_t l = 0; l < before.size(); ++l) {
    const double factor = factors[run->model().layers[l].block.index()];
    for (std::size_t p = 0; p < before[l].size(); ++p) {
      EXPECT_TRUE(at::allclose(after[l][p] - before[l][p], (whole[l][p] - before[l][p]) * factor,
                               1e-3, 1e-7))
          << l;
    }
  }
  EXPECT_THROW(run->step(1, kRate, small_micro_batches(1, 6), false, {1, 1}), std::logic_error);
}

}  // namespace
}  // namespace frazil
