// A run does, sends and adds nothing that the mask makes needless: what it performs is, action by
// action, what the simulator prices, and what can be counted by hand.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "exec/program/step_program.h"
#include "planner/actions/message.h"
#include "planner/lowering/lower.h"
#include "tests/exec/models/model_checks.h"
#include "tests/exec/models/random_forms.h"

namespace frazil {
namespace {

constexpr std::uint64_t kWorkSeed = 7;

using WorkCounts = std::map<std::string, int>;

std::string text_of(DeviceId device, const Action& action) {
  return "d" + std::to_string(device.value) + " " + to_text(action);
}

struct Performed {
  WorkCounts work;                   // F, I, W, B, R, U, pairs and SENDs
  std::set<std::string> reductions;  // a stage's, of several groups of layers or of one
  std::map<Message, int> sent;
  std::map<Message, int> received;
};

Performed perform(const TestModel& model, const PlanForm& form) {
  Run run(model.spec, momentum_sgd(), kWorkSeed, form.all_devices());
  run.transition_to(make_plan(model, form));
  const StepResult result =
      run.step(0, 1e-2, model.samples({.seed = 1, .micro_batches = form.micro_batches}), true);
  Performed performed;
  for (Span span : result.spans) {
    set_step(span.action, 0);
    if (span.action.kind == ActionKind::kReduceGradients) {
      performed.reductions.insert(text_of(span.device, span.action));
    } else if (is_receive(span.action)) {
      ++performed.received[message_of(span.action)];
    } else {
      if (is_send(span.action)) ++performed.sent[message_of(span.action)];
      ++performed.work[text_of(span.device, span.action)];
    }
  }
  return performed;
}

// Counts what the simulator prices of the same plan.
Performed price(const TestModel& model, const PlanForm& form) {
  const ModelProfile profile = make_timed_structure(model.spec);
  const Plan plan = make_plan(model, form);
  const StepProgram program = make_program(plan, profile, form.all_devices(), false);
  const Cluster cluster = make_linked_cluster(form.all_devices());
  const LoweredStep step = lower(plan, program.schedule, {profile, cluster}, program.activity);
  Performed priced;
  for (TaskId task = 0; task < step.graph.size(); ++task) {
    const TaskLane& lane = step.graph.lanes()[step.graph.lane_of()[task]];
    const Action& action = step.actions[task];
    if (lane.lane == Lane::kCollective) {
      priced.reductions.insert(text_of(lane.device, action));
    } else if (lane.lane != Lane::kHost) {
      if (is_send(action)) ++priced.sent[message_of(action)];
      ++priced.work[text_of(lane.device, action)];
    }
  }
  return priced;
}

TEST(NeededWork, IsWhatTheSimulatorPrices) {
  const unsigned seed = 20261123;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<PlanForm> forms = {
      {.devices = 2},
      {.schedule = ScheduleKind::kGpipe, .devices = 3, .cuts = {1, 4}},
      {.schedule = ScheduleKind::kZbH1, .devices = 3},
      {.schedule = ScheduleKind::kZbV, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kDualPipeV, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kInterleaved, .devices = 2, .chunks = 2},
      {.schedule = ScheduleKind::kChimera, .devices = 2},
      {.devices = 2, .cuts = {3}, .replicas = 2},
      {.devices = 2, .cuts = {3}, .recompute = true},
      {.devices = 3, .shared_stage = 1}};
  int sends = 0;
  for (const TestModel& model : {encoder_model(), decoder_model(), uneven_mlp_model(),
                                 small_cnn_model(), distillation_model()}) {
    for (PlanForm form : forms) {
      for (int trial = 0; trial < 3; ++trial) {
        form.mask = trial == 0 ? model.mask : random_mask(model, random);
        SCOPED_TRACE(model.spec.name + ", " + name_of(form));
        const Performed performed = perform(model, form);
        const Performed priced = price(model, form);
        EXPECT_EQ(performed.work, priced.work);
        EXPECT_EQ(performed.sent, priced.sent);
        EXPECT_EQ(performed.received, priced.sent) << "each message arrives once";
        EXPECT_EQ(performed.reductions, priced.reductions);
        sends += static_cast<int>(performed.sent.size());
      }
    }
  }
  EXPECT_GT(sends, 1000);
}

std::map<ActionKind, int> count_kinds(const TestModel& model, const PlanForm& form) {
  Run run(model.spec, momentum_sgd(), kWorkSeed, form.all_devices());
  run.transition_to(make_plan(model, form));
  std::map<ActionKind, int> counts;
  for (const Span& span :
       run.step(0, 1e-2, model.samples({.seed = 1, .micro_batches = form.micro_batches}), true)
           .spans) {
    ++counts[span.action.kind];
  }
  return counts;
}

// Layers 0 to 3 are frozen, and stage 0 holds them: it runs its two forwards and nothing else.
TEST(NeededWork, OfAFrozenFirstStageIsItsForwards) {
  const std::map<ActionKind, int> expected = {{ActionKind::kForward, 4},
                                              {ActionKind::kSendForward, 2},
                                              {ActionKind::kReceiveForward, 2},
                                              {ActionKind::kBackward, 2},
                                              {ActionKind::kUpdate, 1}};
  EXPECT_EQ(count_kinds(uneven_mlp_model(),
                        {.devices = 2, .micro_batches = 2, .cuts = {4}, .mask = "000111"}),
            expected);
}

// Stages {0 1} {2 3} {4 5 6}: forwards cross 0>1, 1>2 and, with the skip and the stem's output in
// one message, 0>2. With stem and trunk frozen only 2>1 carries a gradient, and stage 0 has no B.
TEST(NeededWork, OfALongSkipIsOneMessagePerPairOfStages) {
  const PlanForm form{.devices = 3, .micro_batches = 2, .cuts = {2, 4}};
  std::map<ActionKind, int> expected = {
      {ActionKind::kForward, 6},  {ActionKind::kSendForward, 6},  {ActionKind::kReceiveForward, 6},
      {ActionKind::kBackward, 6}, {ActionKind::kSendBackward, 6}, {ActionKind::kReceiveBackward, 6},
      {ActionKind::kUpdate, 3}};
  EXPECT_EQ(count_kinds(small_cnn_model(), form), expected);
  PlanForm frozen = form;
  frozen.mask = "001111";
  expected[ActionKind::kBackward] = 4;
  expected[ActionKind::kSendBackward] = expected[ActionKind::kReceiveBackward] = 2;
  expected[ActionKind::kUpdate] = 2;
  EXPECT_EQ(count_kinds(small_cnn_model(), frozen), expected);
}

// Two replicas have stages {T0 S0} {T1 S1 T2 S2}, with S0 frozen: its stage is on two devices, but
// has no gradient to add.
TEST(NeededWork, OfFrozenReplicasIsNoReduction) {
  const PlanForm form{.devices = 2, .micro_batches = 2, .cuts = {4}, .replicas = 2, .mask = "0111"};
  const std::map<ActionKind, int> expected = {
      {ActionKind::kForward, 4},         {ActionKind::kSendForward, 2},
      {ActionKind::kReceiveForward, 2},  {ActionKind::kBackward, 2},
      {ActionKind::kReduceGradients, 2}, {ActionKind::kUpdate, 2}};
  EXPECT_EQ(count_kinds(distillation_model(), form), expected);
}

}  // namespace
}  // namespace frazil
