#include "tests/exec/models/model_checks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "profiles/error.h"

namespace frazil {
namespace {

using Kind = ScheduleKind;

constexpr std::uint64_t kChecksSeed = 11;
// The rate is a power of two, so that the product with a gradient is exact, whether the product is
// added in one operation or two.
constexpr double kRate = 0.125;

OptimizerConfig plain_descent() {
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerConfig::Kind::kSgd;
  optimizer.momentum = 0;
  optimizer.weight_decay = 0;
  return optimizer;
}

// Compares byte by byte, for the two zeros differ.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() &&
         at::equal(a.detach().contiguous().view(at::kInt), b.detach().contiguous().view(at::kInt));
}

void expect_equal(const ModelSpec& model, const DeviceState& state, const LayerTensors& expected) {
  for (std::size_t l = 0; l < expected.size(); ++l) {
    const Tensors& own = state.at(LayerId{l}).parameters;
    ASSERT_EQ(own.size(), expected[l].size());
    for (std::size_t p = 0; p < own.size(); ++p) {
      EXPECT_TRUE(same_bits(own[p], expected[l][p])) << model.layers[l].parameters[p].name;
    }
  }
}

// Returns the momenta after one step of SGD from `weights` on, which are the gradients themselves.
// A layer that has not been updated has none.
std::vector<Tensors> gradients_at(const TestModel& model, const std::string& mask,
                                  const LayerTensors& weights, Step step,
                                  const std::vector<Samples>& micro_batches) {
  Run run(model.spec, momentum_sgd(), kChecksSeed, 1);
  std::vector<LayerState> states(weights.size());
  for (std::size_t l = 0; l < weights.size(); ++l) {
    for (const at::Tensor& weight : weights[l]) {
      states[l].parameters.push_back(weight.detach().clone());
    }
  }
  run.restore(std::move(states));
  run.transition_to(make_plan(model, {.micro_batches = 4, .mask = mask}));
  run.step(step, kRate, micro_batches);
  std::vector<Tensors> gradients;
  for (const auto& [layer, state] : run.pool().states().at(0))
    gradients.push_back(state.first_moment);
  return gradients;
}

void expect_gradients(const ModelSpec& model, const std::vector<Tensors>& found,
                      const LayerTensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t l = 0; l < expected.size(); ++l) {
    std::size_t next = 0;
    for (std::size_t p = 0; p < expected[l].size(); ++p) {
      SCOPED_TRACE("gradient of " + model.layers[l].parameters[p].name);
      if (!expected[l][p].defined()) {
        // What the step does not move of a layer that trains keeps the momentum that it began with.
        if (!model.layers[l].moved || next == found[l].size()) continue;
        EXPECT_TRUE(same_bits(found[l][next], at::zeros_like(found[l][next])));
        ++next;
        continue;
      }
      ASSERT_LT(next, found[l].size());
      EXPECT_TRUE(same_bits(found[l][next++], expected[l][p]));
    }
    EXPECT_EQ(next, found[l].size()) << "no other gradient of layer " << l;
  }
}

bool fits(const PlanForm& form, const ModelSpec& model) {
  const int layers = static_cast<int>(model.layers.size());
  const auto is_cut = [&](int cut) { return cut > 0 && cut < layers; };
  return form.devices * form.chunks <= layers &&
         std::all_of(form.cuts.begin(), form.cuts.end(), is_cut);
}

std::vector<PlanForm> forms_of(const TestModel& model, int micro_batches) {
  const int layers = model.layers();
  std::vector<PlanForm> forms;
  const auto add = [&](PlanForm form) {
    if (!fits(form, model.spec)) return;
    form.micro_batches = micro_batches;
    if (forms.size() % 2 != 0) form.order = MessageOrder::kAsSent;
    forms.push_back(std::move(form));
  };
  for (int cut = 1; cut < layers; ++cut) {
    const bool is_odd = cut % 2 != 0;
    if ((cut + micro_batches) % 2 != 0) {
      add({.schedule = is_odd ? Kind::kGpipe : Kind::kZbH1, .devices = 2, .cuts = {cut}});
    } else {
      add({.devices = 2, .cuts = {cut}, .recompute = is_odd});
    }
  }
  add({.schedule = Kind::kGpipe, .devices = 3});
  add({.devices = 3, .cuts = {1, layers - 1}});
  add({.schedule = Kind::kZbH1, .devices = 3});
  add({.schedule = Kind::kZbH1, .devices = 3, .recompute = true});
  add({.replicas = 2});
  add({.devices = 2, .replicas = 2});
  add({.schedule = Kind::kZbH1, .devices = 2, .cuts = {layers / 2 + 1}, .replicas = 2});
  add({.schedule = Kind::kInterleaved, .devices = 2, .chunks = 2});
  add({.schedule = Kind::kInterleaved, .devices = 2, .chunks = 3});
  add({.schedule = Kind::kZbV, .devices = 2, .chunks = 2});
  add({.schedule = Kind::kZbV, .devices = 3, .chunks = 2});
  add({.schedule = Kind::kDualPipeV, .devices = 2, .chunks = 2});
  add({.schedule = Kind::kDualPipeV, .devices = 2, .chunks = 2, .recompute = true});
  add({.schedule = Kind::kChimera, .devices = 2});
  add({.schedule = Kind::kGpipe, .devices = 2, .cuts = {layers - 2}, .shared_stage = 0});
  add({.devices = 3, .recompute = true, .shared_stage = 1});
  add({.schedule = Kind::kZbH1, .devices = 2, .shared_stage = 1});
  return forms;
}

}  // namespace

void expect_plain_bits(const TestModel& plain_model, const std::string& mask, Precision precision) {
  SCOPED_TRACE("mask " + mask);
  const TestModel model = plain_model.in(precision);
  Run run(model.spec, plain_descent(), kChecksSeed, 1);
  run.transition_to(make_plan(model, {.micro_batches = 4, .mask = mask}));
  LayerTensors weights = start_values(model.spec, kChecksSeed);
  freeze(model.spec, weights, mask.empty() ? model.mask : mask);
  for (Step step = 0; step < 2; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const std::vector<Samples> micro_batches = model.samples(
        {.seed = static_cast<std::uint64_t>(step) + 1, .last_short_by = static_cast<int>(step)});
    const std::vector<Tensors> gradients = gradients_at(model, mask, weights, step, micro_batches);
    const double loss = run.step(step, kRate, micro_batches).loss;
    Differentiated plain = differentiate_step(plain_model.spec, weights, micro_batches, kChecksSeed,
                                              step, precision, mask.empty() ? model.mask : mask);
    EXPECT_EQ(loss, std::accumulate(plain.losses.begin(), plain.losses.end(), 0.0));
    add_uses(model.spec, plain.gradients);
    expect_gradients(model.spec, gradients, plain.gradients);
    descend(weights, plain.gradients, kRate);
    expect_equal(model.spec, run.pool().states().at(0), weights);
  }
}

int expect_bits_of_one_device(const TestModel& model, const OptimizerConfig& optimizer) {
  int runs = 0;
  for (const int micro_batches : {5, 8}) {
    const std::uint64_t expected =
        train_two_steps(model, optimizer, {.micro_batches = micro_batches});
    const PlanForm measured{.devices = std::min(3, model.layers()), .micro_batches = micro_batches};
    EXPECT_EQ(train_two_steps(model, optimizer, measured, {.layers = true, .split_backward = true}),
              expected);
    for (const PlanForm& form : forms_of(model, micro_batches)) {
      SCOPED_TRACE(name_of(form));
      try {
        EXPECT_EQ(train_two_steps(model, optimizer, form), expected);
        ++runs;
      } catch (const InfeasibleError& error) {
        // Some schedules take an even number of micro-batches, or no fewer than devices.
        EXPECT_EQ(micro_batches, 5) << error.what();
      }
    }
  }
  return runs;
}

}  // namespace frazil
