#include "tests/exec/support/sliced_runs.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "exec/state/optimizer.h"
#include "tests/exec/models/model_plans.h"
#include "tests/exec/support/small_vit.h"
#include "tests/planner/support/sliced_stages.h"

namespace frazil {
namespace {

// Takes the largest difference of an element over the largest element of all.
void expect_near(const Tensors& found, const Tensors& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double scale = 0;
  for (const at::Tensor& tensor : expected) scale = std::max(scale, largest_element(tensor));
  for (std::size_t t = 0; t < found.size(); ++t) {
    EXPECT_LE(largest_element(found[t] - expected[t]), tolerance * scale) << what << " " << t;
  }
}

}  // namespace

TestModel vit_model() {
  VitConfig config = small_config();
  config.dropout = 0.1;
  TestModel model{.spec = make_vit(config), .samples = {}, .mask = "11111"};
  model.samples = [](const StepShape& shape) {
    return draw_micro_batches(shape, [](at::Generator& generator, std::int64_t n) {
      return Samples{{draw_normal({n, 1, 8, 8}, generator)}, draw_integers({n}, 10, generator)};
    });
  };
  return model;
}

int SlicedForm::all_devices() const {
  int most = 0;
  for (const auto& of_stage : devices) {
    for (const int device : of_stage) most = std::max(most, device);
  }
  return most + 1;
}

std::string name_of(const SlicedForm& one) {
  std::string name(schedule_name(one.schedule));
  for (const auto& of_stage : one.devices) {
    name += " on";
    for (const int device : of_stage) name += " " + std::to_string(device);
  }
  return name + ", " + std::to_string(one.micro_batches) + " micro-batches, mask " + one.mask +
         (one.recompute ? ", recomputing" : "") +
         (one.order == MessageOrder::kAsSent ? ", messages as sent" : "");
}

Plan make_sliced_plan(const TestModel& model, const SlicedForm& one) {
  Plan plan = make_plan(model, {.micro_batches = one.micro_batches, .mask = one.mask});
  plan.micro_batch_size = kSlicedSamples;
  plan.batch_size = kSlicedSamples * one.micro_batches;
  const auto stages = static_cast<int>(one.devices.size());
  std::vector<LayerId> cuts;
  for (int s = 1; s < stages; ++s) cuts.emplace_back(s * model.layers() / stages);
  plan.pipelines = {make_pipeline(model.layers(), cuts,
                                  std::vector<DeviceId>(one.devices.size(), DeviceId{0}),
                                  {MicroBatchId{0}, MicroBatchId{one.micro_batches - 1}})};
  for (std::size_t s = 0; s < one.devices.size(); ++s) {
    Stage& stage = plan.pipelines[0].stages[s];
    stage.devices.clear();
    for (const int device : one.devices[s]) stage.devices.emplace_back(device);
    stage.axis = DeviceAxis::kSamples;
    if (one.recompute) stage.memory = MemoryPolicy::kRecompute;
  }
  plan.schedule = NamedSchedule{.kind = one.schedule};
  if (has_sliced_stage(plan.pipelines[0])) plan.reduction = ReductionMode::kFast;
  return plan;
}

double largest_element(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0 : tensor.abs().max().item<double>();
}

std::vector<LayerState> copy_states(frazil::Run& run, const TestModel& model) {
  run.weight_hash();
  std::vector<LayerState> states;
  for (const LayerState* state : first_holders(run.pool().states(), model.layers())) {
    states.push_back(clone(*state));
  }
  return states;
}

SlicedOutcome train_sliced(const TestModel& model, const OptimizerConfig& optimizer,
                           const SlicedForm& one, int steps) {
  frazil::Run run(model.spec, optimizer, 7, one.all_devices(), {.order = one.order});
  run.transition_to(make_sliced_plan(model, one));
  SlicedOutcome outcome;
  for (Step step = 0; step < steps; ++step) {
    const auto samples = model.samples({.seed = static_cast<std::uint64_t>(step) + 1,
                                        .micro_batches = one.micro_batches,
                                        .micro_batch_size = kSlicedSamples,
                                        .last_short_by = step == 2 ? 1 : 0});
    outcome.losses.push_back(run.step(step, kSlicedRate, samples).loss);
  }
  outcome.layers = copy_states(run, model);
  return outcome;
}

void expect_same_training(const SlicedOutcome& found, const SlicedOutcome& expected,
                          double tolerance) {
  for (std::size_t l = 0; l < expected.layers.size(); ++l) {
    const std::string layer = "layer " + std::to_string(l);
    expect_near(found.layers[l].parameters, expected.layers[l].parameters, tolerance,
                layer + " parameter");
    expect_near(found.layers[l].first_moment, expected.layers[l].first_moment, tolerance,
                layer + " momentum");
  }
  for (std::size_t s = 0; s < expected.losses.size(); ++s) {
    EXPECT_NEAR(found.losses[s], expected.losses[s], tolerance * std::abs(expected.losses[s]));
  }
}

OptimizerConfig undecayed_sgd(double clip_norm) {
  OptimizerConfig optimizer = momentum_sgd();
  optimizer.weight_decay = 0;
  optimizer.clip_norm = clip_norm;
  return optimizer;
}

const std::vector<std::vector<std::vector<int>>>& sliced_distributions() {
  static const std::vector<std::vector<std::vector<int>>> all{
      {{0, 1, 2, 3}},      {{0}, {1, 2}},      {{0, 1}, {2}},     {{0, 1}, {2, 3}},
      {{0, 1, 2}, {3}},    {{0}, {1, 2, 3}},   {{0, 1}, {1, 2}},  {{0, 1}, {1, 0}},
      {{0, 1, 2}, {2, 3}}, {{0}, {1, 2}, {3}}, {{0, 1}, {2}, {3}}};
  return all;
}

bool lie_apart(const std::vector<std::vector<int>>& devices) {
  std::set<int> seen;
  for (const auto& of_stage : devices) {
    for (const int device : of_stage) {
      if (!seen.insert(device).second) return false;
    }
  }
  return true;
}

}  // namespace frazil
