// Interior masks: gaps of frozen blocks anywhere, under random plans.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "planner/schedule_menu.h"
#include "profiles/error.h"
#include "tests/exec/models/model_checks.h"

namespace frazil {
namespace {

constexpr std::uint64_t kSeed = 7;

std::vector<TestModel> models_with_gaps() {
  return {encoder_model(), uneven_mlp_model(), small_cnn_model(), distillation_model()};
}

class RandomForms {
 public:
  explicit RandomForms(unsigned seed) : random_(seed) {}

  // Below `end`.
  int draw(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

  // Some frozen block has an active one before it; blocks that never train stay frozen.
  std::string mask(const TestModel& model) {
    while (true) {
      std::string mask = model.mask;
      for (std::size_t b = 0; b + 1 < mask.size(); ++b) {
        if (mask[b] == '1' && draw(2) == 0) mask[b] = '0';
      }
      const std::size_t active = mask.find('1');
      if (mask != model.mask && mask.find('0', active) != std::string::npos) return mask;
    }
  }

  // Any schedule with a flush, with cuts anywhere, that takes the model.
  PlanForm form(const TestModel& model, const std::string& mask) {
    while (true) {
      const ScheduleFamily& family = schedule_families()[static_cast<std::size_t>(
          draw(static_cast<int>(schedule_families().size())))];
      if (family.versions != WeightVersions::kSync || family.kind == ScheduleKind::kVaruna) {
        continue;
      }
      PlanForm form{.schedule = family.kind,
                    .devices = 2 + draw(3),
                    .chunks = family.chunks,
                    .micro_batches = 5 + draw(2),
                    .mask = mask,
                    .recompute = draw(4) == 0,
                    .order = draw(2) == 0 ? MessageOrder::kByTag : MessageOrder::kAsSent};
      if (form.devices == 2 && draw(2) == 0) form.replicas = 2;
      form.cuts = cuts(form.devices * form.chunks, model.layers());
      if (is_legal(model, form)) return form;
    }
  }

 private:
  std::vector<int> cuts(int stages, int layers) {
    if (stages > layers) return {};
    std::vector<int> all;
    for (int l = 1; l < layers; ++l) all.push_back(l);
    for (std::size_t left = all.size(); left > 1; --left) {
      std::swap(all[left - 1], all[static_cast<std::size_t>(draw(static_cast<int>(left)))]);
    }
    all.resize(static_cast<std::size_t>(stages - 1));
    std::sort(all.begin(), all.end());
    return all;
  }

  static bool is_legal(const TestModel& model, const PlanForm& form) {
    try {
      make_plan(model, form);
      return true;
    } catch (const InfeasibleError&) {
      return false;
    }
  }

  std::mt19937 random_;
};

void step_on(Run& run, const TestModel& model, Step step, int micro_batches) {
  run.step(
      step, 1e-2,
      model.samples({.seed = static_cast<std::uint64_t>(step), .micro_batches = micro_batches}));
}

void expect_frozen_constant(const Run& run, const LayerTensors& before, const FreezeMask& mask) {
  const Activity activity = find_activity(run.structure(), mask);
  for (const DeviceState& state : run.states()) {
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
  Run run(model.spec, optimizer, kSeed, form.all_devices(), {.order = form.order});
  const LayerTensors before = start_values(model.spec, kSeed);
  const Plan plan = make_plan(model, form);
  run.switch_to(plan);
  for (Step step = 0; step < 2; ++step) step_on(run, model, step, form.micro_batches);
  expect_frozen_constant(run, before, plan.mask);
  Hashes hashes{.frozen = run.weight_hash()};
  run.switch_to(make_plan(
      model, {.devices = std::min(2, form.all_devices()), .micro_batches = form.micro_batches}));
  step_on(run, model, 2, form.micro_batches);
  expect_frozen_constant(run, before, FreezeMask::parse(model.mask, "test", 0));
  hashes.thawed = run.weight_hash();
  return hashes;
}

TEST(FrozenMasks, AnywhereGiveTheBitsOfOneDeviceAndThawAgain) {
  const unsigned seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomForms random(seed);
  const std::vector<TestModel> models = models_with_gaps();
  std::map<std::tuple<std::string, std::string, int>, Hashes> known;
  std::map<ScheduleKind, int> schedules;
  for (int trial = 0; trial < 200; ++trial) {
    const TestModel& model = models[static_cast<std::size_t>(trial) % models.size()];
    const std::string mask = random.mask(model);
    const PlanForm form = random.form(model, mask);
    const bool clips = form.micro_batches % 2 == 0;
    const OptimizerConfig optimizer = clips ? clipped_adamw() : momentum_sgd();
    SCOPED_TRACE(model.spec.name + ", " + name_of(form) + (clips ? ", AdamW" : ", SGD"));
    const auto [expected, added] = known.try_emplace({model.spec.name, mask, form.micro_batches});
    if (added) {
      expected->second =
          train(model, {.micro_batches = form.micro_batches, .mask = mask}, optimizer);
    }
    EXPECT_EQ(train(model, form, optimizer), expected->second);
    ++schedules[form.schedule];
  }
  EXPECT_GE(schedules.size(), 15U) << "most schedules took part";
}

}  // namespace
}  // namespace frazil
