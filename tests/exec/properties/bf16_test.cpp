// Models that compute in bf16: bits of autocast over the whole model, whatever the plan; what
// stays in fp32; what messages and stashes take.

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/exec/models/model_checks.h"
#include "tests/exec/support/family_plans.h"
#include "tests/exec/support/measured_memories.h"
#include "tests/exec/support/sliced_runs.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr Precision kBf16 = Precision::kBf16;

std::map<std::string, TestModel> all_bf16_models() {
  std::map<std::string, TestModel> models;
  models.emplace("vit", vit_model());
  for (const TestModel& model : {encoder_model(), decoder_model(), uneven_mlp_model(),
                                 small_cnn_model(), small_vgg_model(), distillation_model()}) {
    models.emplace(model.spec.name, model);
  }
  return models;
}

std::vector<Tensors> outputs_of(const TestModel& model) {
  const c10::NoGradGuard no_grad;
  const LayerTensors values = start_values(model.spec, 3);
  std::vector<const Tensors*> parameters;
  for (const Tensors& own : values) parameters.push_back(&own);
  return forward_model(model.spec, parameters, model.samples({.seed = 1}).front().inputs);
}

TEST(Bf16, OnOneDeviceHasTheBitsOfAutocastOverTheWholeModel) {
  for (const auto& [name, model] : all_bf16_models()) {
    SCOPED_TRACE(name);
    expect_plain_bits(model, {}, kBf16);
  }
}

TEST(Bf16, UnderMasksHasTheBitsOfAutocastOverTheWholeModel) {
  for (const std::string mask : {"01111", "00011", "10101"}) {
    expect_plain_bits(vit_model(), mask, kBf16);
  }
}

TEST(Bf16, HasOtherBitsThanFp32) {
  for (const auto& [name, model] : all_bf16_models()) {
    EXPECT_NE(train_two_steps(model.in(kBf16), momentum_sgd(), {}),
              train_two_steps(model, momentum_sgd(), {}))
        << name;
  }
}

// Among the plans are recomputing ones, backwards in halves, replicas and shared stages.
TEST(Bf16, HasTheBitsOfOneDeviceUnderEveryPlan) {
  EXPECT_GE(expect_bits_of_one_device(uneven_mlp_model().in(kBf16), momentum_sgd()), 45);
  EXPECT_GE(expect_bits_of_one_device(small_cnn_model().in(kBf16), clipped_adamw()), 45);
}

TEST(Bf16, HasTheBitsOfOneDeviceRecomputingAndInHalves) {
  for (const auto& [name, model] : all_bf16_models()) {
    SCOPED_TRACE(name);
    const TestModel narrow = model.in(kBf16);
    const std::uint64_t kept = train_two_steps(narrow, clipped_adamw(), {});
    for (const PlanForm& form :
         {PlanForm{.devices = 2, .recompute = true},
          PlanForm{.schedule = ScheduleKind::kZbH1, .devices = 2},
          PlanForm{.schedule = ScheduleKind::kZbH1, .devices = 2, .recompute = true}}) {
      EXPECT_EQ(train_two_steps(narrow, clipped_adamw(), form), kept) << name_of(form);
    }
  }
}

// Reductions of mode fast add in an order of their own, but always in that one.
TEST(Bf16, RepeatsItsBitsInModeFast) {
  const TestModel model = vit_model().in(kBf16);
  const auto train = [&] {
    frazil::Run run(model.spec, clipped_adamw(), 5, 4);
    Plan plan = make_plan(model, {.devices = 2, .micro_batches = 8, .replicas = 2});
    plan.reduction = ReductionMode::kFast;
    run.transition_to(plan);
    for (Step step = 0; step < 3; ++step) {
      run.step(step, 1e-2, model.samples({.seed = 9, .micro_batches = 8}));
    }
    return run.weight_hash();
  };
  EXPECT_EQ(train(), train());
}

TEST(Bf16, KeepsWeightsGradientsAndMomentsInFp32) {
  for (const auto& [name, model] : all_bf16_models()) {
    frazil::Run run(model.in(kBf16).spec, clipped_adamw(), 5, 2);
    run.measure({.gradient_sums = true});
    run.transition_to(make_plan(model.in(kBf16), {.devices = 2}));
    run.step(0, 1e-2, model.samples({.seed = 1}));
    for (const DeviceState& device : run.pool().states()) {
      for (const auto& [layer, state] : device) {
        for (const auto* const tensors :
             {&state.parameters, &state.first_moment, &state.second_moment, &state.gradient_sums}) {
          for (const at::Tensor& tensor : *tensors) EXPECT_EQ(tensor.scalar_type(), at::kFloat);
        }
      }
    }
  }
}

// What the structure says of edges is what messages, the planner and the simulator count.
TEST(Bf16, StructureTellsTheBytesThatCross) {
  bool has_half = false;
  for (const auto& [name, model] : all_bf16_models()) {
    const ModelProfile wide = make_structure(model.spec, 2);
    const TestModel narrow = model.in(kBf16);
    const ModelProfile profile = make_structure(narrow.spec, 2);
    EXPECT_EQ(profile.precision, kBf16);
    EXPECT_NE(model_hash(profile), model_hash(wide));
    const std::vector<Tensors> outputs = outputs_of(narrow);
    for (std::size_t e = 0; e < profile.edges.size(); ++e) {
      const ModelEdge& edge = narrow.spec.edges[e];
      for (std::size_t i = 0; i < edge.outputs.size(); ++i) {
        const at::Tensor& output = outputs[edge.from.index()].at(edge.outputs[i]);
        const std::int64_t bytes = profile.edges[e].tensor_bytes_per_sample[i].count;
        EXPECT_EQ(static_cast<std::int64_t>(output.nbytes()), bytes * output.size(0))
            << name << ", " << narrow.spec.layers[edge.from.index()].name;
        has_half |= 2 * bytes == wide.edges[e].tensor_bytes_per_sample[i].count;
      }
    }
  }
  EXPECT_TRUE(has_half);
}

// Whoever calls may be under autocast with weights in its cache: they are not those of a later
// forward.
TEST(Bf16, NeverReadsAWeightThatWasCastBeforeAnUpdate) {
  const TestModel model = uneven_mlp_model().in(kBf16);
  const LayerSpec& layer = model.spec.layers.front();
  Tensors parameters = initial_parameters(model.spec, LayerId{0}, 1);
  for (at::Tensor& parameter : parameters) parameter.set_requires_grad(true);
  const Tensors inputs = model.samples({.seed = 1}).front().inputs;
  const auto forward = [&] { return layer.forward({LayerId{0}, parameters, inputs, {}}).at(0); };
  const at::Tensor before = forward().detach();
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::increment_nesting();
  (void)at::linear(inputs.at(0), parameters.at(0));  // leaves the cast weight in the cache
  const at::Tensor same = forward().detach();
  {
    const c10::NoGradGuard no_grad;
    for (at::Tensor& parameter : parameters) parameter.mul_(2);
  }
  const at::Tensor after = forward().detach();
  at::autocast::decrement_nesting();
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_TRUE(at::equal(same, before));
  EXPECT_FALSE(at::equal(after, before));
  EXPECT_TRUE(at::equal(after, forward()));
}

TEST(Bf16, LeavesAutocastAsItWas) {
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  (void)outputs_of(uneven_mlp_model().in(kBf16));
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
}

// The stash counts the weights that each micro-batch's graph has cast.
TEST(Bf16, MemoryEqualsTheSimulated) {
  for (const auto& [kind, mask] :
       {std::pair{ScheduleKind::kGpipe, "11111"}, std::pair{ScheduleKind::kZbH1, "11111"},
        std::pair{ScheduleKind::kOneForwardOneBackward, "00111"}}) {
    const ModelSpec model = vit_model().in(kBf16).spec;
    const ModelProfile profile =
        make_measured_profile(model, clipped_adamw(), small_micro_batches(0, 1).front());
    const FamilyForm form{kind, 2, 1, 6, mask};
    SCOPED_TRACE(name_of(form));
    expect_equal(measure_memories(model, clipped_adamw(), profile, place_family(form, profile), 2,
                                  {small_micro_batches(0, 6), small_micro_batches(1, 6)}));
  }
}

}  // namespace
}  // namespace frazil
