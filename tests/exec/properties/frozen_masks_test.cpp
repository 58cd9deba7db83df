// Interior masks have gaps of frozen blocks anywhere, under random plans.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/exec/models/model_checks.h"
#include "tests/exec/models/random_forms.h"

namespace frazil {
namespace {

constexpr std::uint64_t kFrozenMasksSeed = 7;

void step_on(Run& run, const TestModel& model, Step step, int micro_batches) {
  run.step(
      step, 1e-2,
      model.samples({.seed = static_cast<std::uint64_t>(step), .micro_batches = micro_batches}));
}

void expect_frozen_constant(Run& run, const LayerTensors& before, const FreezeMask& mask) {
  const Activity activity = find_activity(run.structure(), mask);
  for (const DeviceState& state : run.pool().states()) {
    for (const auto& [layer, own] : state) {
      for (std::size_t p = 0; p < own.parameters.size(); ++p) {
        EXPECT_EQ(at::equal(own.parameters[p], before[layer.index()][p]),
                  !activity.layers[layer.index()].weight_gradient)
            << run.model().layers[layer.index()].parameters[p].name;
      }
    }
  }
}

struct Hashes {
  std::uint64_t frozen = 0;  // after two steps under the mask
  std::uint64_t thawed = 0;  // and one more without it, under another plan
  friend bool operator==(const Hashes&, const Hashes&) = default;
};

Hashes train(const TestModel& model, const PlanForm& form, const OptimizerConfig& optimizer) {
  Run run(model.spec, optimizer, kFrozenMasksSeed, form.all_devices(), {.order = form.order});
  const LayerTensors before = start_values(model.spec, kFrozenMasksSeed);
  const Plan plan = make_plan(model, form);
  run.transition_to(plan);
  for (Step step = 0; step < 2; ++step) step_on(run, model, step, form.micro_batches);
  expect_frozen_constant(run, before, plan.mask);
  Hashes hashes{.frozen = run.weight_hash()};
  run.transition_to(make_plan(
      model, {.devices = std::min(2, form.all_devices()), .micro_batches = form.micro_batches}));
  step_on(run, model, 2, form.micro_batches);
  expect_frozen_constant(run, before, FreezeMask::parse(model.mask, "test", 0));
  hashes.thawed = run.weight_hash();
  return hashes;
}

// The model has ten blocks, so that masks seldom come twice.
TestModel deep_encoder_model() {
  EncoderConfig config = small_encoder();
  config.blocks = 8;
  return encoder_model(config);
}

TEST(FrozenMasks, AnywhereGiveTheBitsOfOneDeviceAndThawAgain) {
  const unsigned seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomForms random(seed);
  const std::vector<TestModel> models = models_with_gaps();
  const TestModel deep = deep_encoder_model();
  std::map<std::tuple<std::string, std::string, int>, Hashes> known;
  std::set<std::pair<std::string, std::string>> masks;  // of a model
  std::map<ScheduleKind, int> schedules;
  for (std::size_t trial = 0; trial < 80; ++trial) {
    const TestModel& model = trial % 2 == 0 ? deep : models[trial / 2 % models.size()];
    const std::string mask = random.mask(model);
    const PlanForm form = random.form(model, mask);
    const bool clips = form.micro_batches % 2 == 0;
    const OptimizerConfig optimizer = clips ? clipped_adamw() : momentum_sgd();
    SCOPED_TRACE(model.spec.name + ", " + name_of(form) + (clips ? ", AdamW" : ", SGD"));
    masks.emplace(model.spec.name, mask);
    const auto [expected, added] = known.try_emplace({model.spec.name, mask, form.micro_batches});
    if (added) {
      expected->second =
          train(model, {.micro_batches = form.micro_batches, .mask = mask}, optimizer);
    }
    EXPECT_EQ(train(model, form, optimizer), expected->second);
    ++schedules[form.schedule];
  }
  EXPECT_EQ(masks.size(), 61U) << "different ones";
  EXPECT_GE(schedules.size(), 15U) << "most schedules took part";
}

}  // namespace
}  // namespace frazil
