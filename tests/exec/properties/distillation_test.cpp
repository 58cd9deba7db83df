// Teacher and student are one model, with several losses, and boundaries that carry no gradient at
// all.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/exec/models/model_checks.h"

namespace frazil {
namespace {

constexpr std::uint64_t kDistillationSeed = 11;

bool is_teacher(const ModelSpec& model, LayerId layer) {
  return model.layers[layer.index()].name.starts_with("teacher.");
}

std::map<LayerId, Tensors> train_one_way(const TestModel& model, const std::string& mask,
                                         int devices) {
  frazil::Run run(model.spec, momentum_sgd(), kDistillationSeed, devices);
  run.transition_to(make_plan(model, {.devices = devices, .mask = mask}));
  for (Step step = 0; step < 3; ++step) {
    run.step(step, 1e-2, model.samples({.seed = static_cast<std::uint64_t>(step)}));
  }
  std::map<LayerId, Tensors> weights;
  for (const DeviceState& state : run.pool().states()) {
    for (const auto& [layer, own] : state) weights[layer] = own.parameters;
  }
  return weights;
}

bool same_bits(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

TEST(Distillation, OnOneDeviceHasTheBitsOfAPlainProgram) {
  expect_plain_bits(distillation_model());
}

TEST(Distillation, UnderMasksHasTheBitsOfAPlainProgram) {
  for (const std::string mask : {"0111", "1011", "0101", "1101"}) {
    expect_plain_bits(distillation_model(), mask);
  }
}

TEST(Distillation, HasTheBitsOfOneDeviceUnderEveryPlan) {
  EXPECT_GE(expect_bits_of_one_device(distillation_model(), clipped_adamw()), 51);
}

// The student's norms take the statistics of each micro-batch, whoever works on it; the teacher's
// stay as they are.
TEST(Distillation, WithBatchNormHasTheBitsOfAPlainProgramAndOfOneDeviceUnderEveryPlan) {
  expect_plain_bits(distilled_vgg_model());
  expect_plain_bits(distilled_vgg_model(), "0101");
  EXPECT_GE(expect_bits_of_one_device(distilled_vgg_model(), clipped_adamw()), 57);
}

TEST(Distillation, NeverChangesTheTeacher) {
  const TestModel model = distillation_model();
  const LayerTensors before = start_values(model.spec, kDistillationSeed);
  for (const auto& [layer, weights] : train_one_way(model, model.mask, 2)) {
    const bool is_constant = is_teacher(model.spec, layer) || weights.empty();
    EXPECT_EQ(same_bits(weights, before[layer.index()]), is_constant)
        << model.spec.layers[layer.index()].name;
  }
}

// Student blocks learn apart from each other: alone, a block has the bits that it has among others.
TEST(Distillation, TeachesAStudentBlockTheSameAloneAndAmongOthers) {
  const TestModel model = distillation_model();
  const auto together = train_one_way(model, model.mask, 3);
  for (const std::string mask : {"1001", "0101", "0011"}) {
    SCOPED_TRACE(mask);
    int blocks = 0;
    for (const auto& [layer, weights] : train_one_way(model, mask, 1)) {
      const BlockId block = model.spec.layers[layer.index()].block;
      if (mask[block.index()] == '0') continue;
      EXPECT_TRUE(same_bits(weights, together.at(layer)));
      ++blocks;
    }
    EXPECT_GT(blocks, 0);
  }
}

// Stages {T0 S0 loss} {T1 S1 loss} {T2 S2 loss}: with S1 alone to learn, T0 and T1 run for it and
// nothing else does, and with S2 alone T0 and T1 are relayed to it.
TEST(Distillation, RunsWhatTheActiveBlocksNeedAlone) {
  const TestModel model = distillation_model();
  const auto count = [&](const std::string& mask) {
    frazil::Run run(model.spec, momentum_sgd(), kDistillationSeed, 3);
    run.measure({.layers = true});
    run.transition_to(make_plan(model, {.devices = 3, .cuts = {4, 8}, .mask = mask}));
    const StepResult step = run.step(0, 1e-2, model.samples({.seed = 1}), true);
    std::string told;
    for (const Span& span : step.spans) {
      if (span.action.kind == ActionKind::kSendForward &&
          span.action.micro_batches->first.value == 0) {
        told += to_text(span.action) + " ";
      }
    }
    std::set<std::string> forwards;
    for (const LayerSample& sample : run.take_layer_samples()) {
      if (sample.phase == LayerPhase::kForward) {
        forwards.insert(model.spec.layers[sample.layer.index()].name);
      }
    }
    for (const std::string& layer : forwards) told += layer + " ";
    return told;
  };
  EXPECT_EQ(count("0101"), "0SEND_F0 loss.1 student.1.a student.1.b teacher.0 teacher.1 ");
  EXPECT_EQ(count("0011"), "0SEND_F0 1SEND_F0 loss.2 student.2 teacher.0 teacher.1 teacher.2 ");
  EXPECT_EQ(count("1001"), "loss.0 student.0.a student.0.b teacher.0 ");
}

// Pipe-BD's hybrid distribution puts the first blocks on two devices that take micro-batches in
// turn.
TEST(Distillation, HasTheBitsOfOneDeviceWithBlocksOnSeveralDevices) {
  const TestModel model = distillation_model();
  const std::uint64_t expected = train_two_steps(model, clipped_adamw(), {.micro_batches = 5});
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward}) {
    for (const int cut : {1, 3, 4, 8}) {
      const PlanForm form{
          .schedule = kind, .devices = 2, .micro_batches = 5, .cuts = {cut}, .shared_stage = 0};
      SCOPED_TRACE(name_of(form));
      EXPECT_EQ(train_two_steps(model, clipped_adamw(), form), expected);
    }
  }
}

// Each micro-batch crosses once, forward: one message per step, micro-batch and pair of stages.
TEST(Distillation, SendsForwardsAlone) {
  const TestModel model = distillation_model();
  frazil::Run run(model.spec, momentum_sgd(), kDistillationSeed, 3);
  run.transition_to(make_plan(model, {.devices = 3, .cuts = {4, 8}}));
  std::map<ActionKind, int> counts;
  for (const Span& span : run.step(0, 1e-2, model.samples({.seed = 1}), true).spans) {
    ++counts[span.action.kind];
  }
  EXPECT_EQ(counts[ActionKind::kSendForward], 2 * 4) << "four micro-batches over two boundaries";
  EXPECT_EQ(counts[ActionKind::kReceiveForward], 2 * 4);
  EXPECT_EQ(counts[ActionKind::kSendBackward], 0);
  EXPECT_EQ(counts[ActionKind::kBackward], 3 * 4) << "every stage has a loss of its own";
  EXPECT_EQ(counts[ActionKind::kUpdate], 3);
}

}  // namespace
}  // namespace frazil
