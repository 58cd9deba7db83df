// In a window of steps each device goes on by itself (planner/plan/step_window.h), and neither a
// weight nor a loss is another.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "planner/plan/step_window.h"
#include "profiles/error.h"
#include "tests/exec/models/model_plans.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

using Kind = ScheduleKind;

constexpr std::uint64_t kWindowSeed = 19;
constexpr int kWindowSteps = 11;  // windows of 8 and of 3; of 2, and of one at the end

// The vit that the tests of the executor share.
TestModel window_vit() {
  return {.spec = make_vit(small_config()),
          .samples =
              [](const StepShape& shape) {
                return small_micro_batches(static_cast<Step>(shape.seed), shape.micro_batches,
                                           shape.last_short_by);
              },
          .mask = std::string(kSmallBlocks, '1')};
}

// The last step lacks a sample, and of more than 4 micro-batches one.
std::vector<StepRequest> make_requests(const TestModel& model, int micro_batches,
                                       int steps = kWindowSteps) {
  std::vector<StepRequest> requests;
  for (int step = 0; step < steps; ++step) {
    const bool is_short = step + 1 == steps;
    const int fewer = is_short && micro_batches > 4 ? 1 : 0;
    requests.push_back(
        {.step = step,
         .learning_rate = 1e-2 / (step + 1),
         .micro_batches = model.samples({.seed = static_cast<std::uint64_t>(step) + 1,
                                         .micro_batches = micro_batches - fewer,
                                         .last_short_by = is_short ? 1 : 0})});
  }
  return requests;
}

Plan make_ahead(const TestModel& model, const PlanForm& form, int steps_ahead) {
  Plan plan = make_plan(model, form);
  plan.steps_ahead = steps_ahead;
  return plan;
}

struct Trained {
  std::uint64_t hash = 0;
  std::vector<StepResult> results;
};

Trained train_ahead(const TestModel& model, const PlanForm& form, int steps_ahead,
                    const OptimizerConfig& optimizer = momentum_sgd(), bool record = false) {
  Run run(model.spec, optimizer, kWindowSeed, form.all_devices(), {.order = form.order});
  run.transition_to(make_ahead(model, form, steps_ahead));
  Trained trained;
  trained.results = run.steps(make_requests(model, form.micro_batches), record);
  trained.hash = run.weight_hash();
  return trained;
}

void expect_same_losses(const Trained& found, const Trained& expected) {
  ASSERT_EQ(found.results.size(), expected.results.size());
  for (std::size_t i = 0; i < found.results.size(); ++i) {
    EXPECT_EQ(found.results[i].loss, expected.results[i].loss) << "step " << i;
  }
}

// Every device has read weights in each of its steps, and all updates before the step were in them.
void expect_no_lag(const Trained& trained, int steps_ahead) {
  for (std::size_t i = 0; i < trained.results.size(); ++i) {
    const std::vector<WeightRead>& reads = trained.results[i].weight_reads;
    EXPECT_EQ(reads.empty(), steps_ahead == 0) << "step " << i;
    for (const WeightRead& read : reads) {
      EXPECT_EQ(read.lag, 0);
      EXPECT_EQ(read.version, static_cast<int>(i) % (steps_ahead + 1));
    }
  }
}

void expect_bits_of_steps_one_by_one(const TestModel& model, const PlanForm& form) {
  SCOPED_TRACE(name_of(form));
  const Trained in_step = train_ahead(model, form, 0);
  expect_no_lag(in_step, 0);
  for (const int steps_ahead : {1, 7}) {
    SCOPED_TRACE(steps_ahead);
    const Trained ahead = train_ahead(model, form, steps_ahead);
    EXPECT_EQ(ahead.hash, in_step.hash);
    expect_same_losses(ahead, in_step);
    expect_no_lag(ahead, steps_ahead);
  }
}

std::vector<PlanForm> window_forms() {
  return {{.schedule = Kind::kGpipe, .devices = 2},
          {.devices = 2, .micro_batches = 5},
          {.schedule = Kind::kZbH1, .devices = 2},
          {.devices = 2, .recompute = true},
          {.schedule = Kind::kInterleaved, .devices = 2, .chunks = 2},
          {.schedule = Kind::kZbV, .devices = 2, .chunks = 2},
          {.schedule = Kind::kChimera, .devices = 2},
          {.replicas = 2},
          {.micro_batches = 5, .replicas = 3},
          {.schedule = Kind::kGpipe, .devices = 3},
          {.devices = 3, .micro_batches = 5},
          {.schedule = Kind::kZbH1, .devices = 3, .order = MessageOrder::kAsSent}};
}

TEST(StepWindows, ChangeNoBitOfADistillation) {
  for (const PlanForm& form : window_forms()) {
    expect_bits_of_steps_one_by_one(distillation_model(), form);
  }
  expect_bits_of_steps_one_by_one(
      distillation_model(), {.devices = 2, .micro_batches = 5, .cuts = {4}, .shared_stage = 0});
}

TEST(StepWindows, ChangeNoBitOfATransformer) {
  for (const PlanForm& form : window_forms()) expect_bits_of_steps_one_by_one(window_vit(), form);
  PlanForm frozen{.devices = 2, .mask = "00111"};
  expect_bits_of_steps_one_by_one(window_vit(), frozen);
}

// Makes the layers of the last blocks wait, so that the device that has them is behind.
TestModel with_slow_end(TestModel model, int first) {
  for (std::size_t l = static_cast<std::size_t>(first); l < model.spec.layers.size(); ++l) {
    LayerSpec& layer = model.spec.layers[l];
    layer.forward = [inner = layer.forward](const LayerCall& call) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return inner(call);
    };
  }
  return model;
}

struct DeviceStep {
  TimePoint first = TimePoint::max();
  TimePoint last = TimePoint::min();
};

std::map<std::pair<Step, DeviceId>, DeviceStep> find_device_steps(const Trained& trained) {
  std::map<std::pair<Step, DeviceId>, DeviceStep> found;
  for (const StepResult& result : trained.results) {
    for (const Span& span : result.spans) {
      DeviceStep& step = found[{span.action.step, span.device}];
      step.first = std::min(step.first, span.start);
      step.last = std::max(step.last, span.end);
    }
  }
  return found;
}

// Returns in how many steps device 0 begins before device 1 has ended the step before.
int count_steps_ahead(const Trained& trained) {
  const auto steps = find_device_steps(trained);
  int ahead = 0;
  for (Step step = 1; step < kWindowSteps; ++step) {
    const DeviceStep& own = steps.at({step, DeviceId{0}});
    ahead += own.first < steps.at({step - 1, DeviceId{1}}).last ? 1 : 0;
  }
  return ahead;
}

TEST(StepWindows, LetADeviceBeginAStepBeforeAnotherHasEndedTheStepBefore) {
  const TestModel model = with_slow_end(distillation_model(), 4);
  const PlanForm form{.schedule = Kind::kGpipe, .devices = 2, .micro_batches = 2, .cuts = {4}};
  const Trained in_step = train_ahead(model, form, 0, momentum_sgd(), true);
  EXPECT_EQ(count_steps_ahead(in_step), 0);
  const Trained ahead = train_ahead(model, form, kWindowSteps - 1, momentum_sgd(), true);
  EXPECT_GT(count_steps_ahead(ahead), 0);
  EXPECT_EQ(ahead.hash, in_step.hash);
  // In windows of 8 and 3 steps, the ninth step begins when all have ended the eighth.
  const Trained windows = train_ahead(model, form, 7, momentum_sgd(), true);
  const auto steps = find_device_steps(windows);
  for (const int device : {0, 1}) {
    EXPECT_GE(steps.at({8, DeviceId{0}}).first, steps.at({7, DeviceId{device}}).last);
  }
}

TEST(StepWindows, AnswerEachStepByItself) {
  const PlanForm form{.schedule = Kind::kGpipe, .devices = 2};
  frazil::Run run(distillation_model().spec, momentum_sgd(), kWindowSeed, 2);
  run.measure({.memory = true, .gradient_squares = true});
  run.transition_to(make_ahead(distillation_model(), form, 4));
  const std::vector<StepResult> ahead =
      run.steps(make_requests(distillation_model(), form.micro_batches), true);
  frazil::Run plain(distillation_model().spec, momentum_sgd(), kWindowSeed, 2);
  plain.measure({.memory = true, .gradient_squares = true});
  plain.transition_to(make_ahead(distillation_model(), form, 0));
  const std::vector<StepResult> in_step =
      plain.steps(make_requests(distillation_model(), form.micro_batches), true);
  ASSERT_EQ(ahead.size(), in_step.size());
  for (std::size_t i = 0; i < ahead.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(ahead[i].spans.size(), in_step[i].spans.size());
    for (const Span& span : ahead[i].spans) EXPECT_EQ(span.action.step, static_cast<Step>(i));
    EXPECT_EQ(ahead[i].gradient_squares, in_step[i].gradient_squares);
    EXPECT_EQ(ahead[i].compute.size(), 2U);
    ASSERT_EQ(ahead[i].memory.size(), 2U);
    for (std::size_t d = 0; d < 2; ++d) {
      EXPECT_EQ(ahead[i].memory[d].peak, in_step[i].memory[d].peak);
      EXPECT_EQ(ahead[i].memory[d].total_peak, in_step[i].memory[d].total_peak);
    }
    EXPECT_GT(ahead[i].wall, Duration{0});
    EXPECT_EQ(ahead[i].note, "");
  }
}

TEST(StepWindows, AreNoneWhereGradientsAreClipped) {
  const PlanForm form{.devices = 2};
  const Trained in_step = train_ahead(distillation_model(), form, 0, clipped_adamw());
  const Trained clipped = train_ahead(distillation_model(), form, 7, clipped_adamw());
  EXPECT_EQ(clipped.hash, in_step.hash);
  EXPECT_EQ(clipped.results.front().note,
            explain_in_step(make_ahead(distillation_model(), form, 7), {.clips = true}));
  EXPECT_EQ(in_step.results.front().note, "");
}

TEST(StepWindows, TellWhereAStepHasFailed) {
  TestModel model = distillation_model();
  LayerSpec& last = model.spec.layers.back();
  last.forward = [inner = last.forward](const LayerCall& call) {
    if (call.key.step == 5) throw std::runtime_error("the layer has failed");
    return inner(call);
  };
  try {
    (void)train_ahead(model, {.schedule = Kind::kGpipe, .devices = 2}, 7);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()).find("rank 1, step 5, action 1F0: the layer has failed"),
              0U)
        << error.what();
  }
}

}  // namespace
}  // namespace frazil
