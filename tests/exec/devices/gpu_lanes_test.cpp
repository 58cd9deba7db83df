// The host runs ahead of streams: it enqueues a step and waits once. The tests' plug-in stands in
// for GPUs, and a watcher looks for an order that a plan needs and no event gives.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "exec/communication/device_communicator.h"
#include "exec/communication/in_process_communicator.h"
#include "profiles/error.h"
#include "tests/exec/devices/fake_accelerator.h"
#include "tests/exec/devices/stream_order.h"
#include "tests/exec/support/cached_courses.h"
#include "tests/exec/support/family_plans.h"
#include "tests/exec/support/rank_failures.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

using Kind = FakeCall::Kind;

DeviceChoice enqueued_streams() {
  return {.kind = DeviceKind::kCuda, .gpus = {}, .splits = true, .plugin = FRAZIL_FAKE_PLUGIN};
}

class EnqueuedSteps : public testing::Test {
 protected:
  void SetUp() override { fake_.reset(); }
  void TearDown() override { fake_.reset(); }

  FakeAccelerator& fake_ = open_fake(FRAZIL_FAKE_PLUGIN);
};

struct TakenSteps {
  std::uint64_t weights = 0;
  std::vector<std::uint64_t> losses;  // their bits
  std::vector<double> squares;
};

struct Steps {
  std::vector<Plan> plans;  // by step
  int devices = 1;
  OptimizerConfig optimizer = {};
};

ModelSpec small_model() {
  VitConfig config = small_config();
  config.dropout = 0.1;
  return make_vit(config);
}

ModelProfile small_structure() { return make_structure(small_model(), 2); }

TakenSteps take_steps(
    const Steps& course, const DeviceChoice& choice,
    const std::function<void()>& after_step = [] {}) {
  Run run(small_model(), course.optimizer, 7, course.devices, {.devices = choice});
  run.measure({.layers = true, .gradient_squares = true, .gradient_sums = true});
  TakenSteps outcome;
  for (std::size_t s = 0; s < course.plans.size(); ++s) {
    const Plan& plan = course.plans[s];
    if (s == 0 || !(plan == course.plans[s - 1])) run.transition_to(plan);
    const auto step = static_cast<Step>(s);
    const StepResult result =
        run.step(step, 1e-2, small_micro_batches(step, plan.micro_batches()), true);
    after_step();
    outcome.losses.push_back(std::bit_cast<std::uint64_t>(result.loss));
    outcome.squares.insert(outcome.squares.end(), result.gradient_squares.begin(),
                           result.gradient_squares.end());
  }
  outcome.weights = run.weight_hash();
  return outcome;
}

// Takes the steps on streams that are watched and on cores, and compares.
void expect_ordered(const Steps& course) {
  StreamOrder order(FRAZIL_FAKE_PLUGIN);
  const TakenSteps there = take_steps(course, enqueued_streams(), [&] { order.end_step(); });
  EXPECT_EQ(order.faults(), std::vector<std::string>());
  EXPECT_EQ(order.items(), 0);
  EXPECT_EQ(order.reads_across() > 0, course.devices > 1);
  const TakenSteps here = take_steps(course, {});
  EXPECT_EQ(there.weights, here.weights);
  EXPECT_EQ(there.losses, here.losses);
  EXPECT_EQ(there.squares, here.squares);
}

TEST_F(EnqueuedSteps, OfEveryScheduleHaveAnEventForEveryOrder) {
  bool clips = false;
  for (const ScheduleFacts& facts : all_schedules()) {
    clips = !clips && facts.versions == WeightVersions::kSync;  // every second one
    FamilyForm form{.kind = facts.kind, .chunks = chunks_of(facts).front(), .micro_batches = 4};
    form.mask = clips ? "01111" : "11111";
    SCOPED_TRACE(name_of(form));
    const Plan plan = place_family(form, small_structure());
    expect_ordered({.plans = {plan, plan},
                    .devices = form.devices,
                    .optimizer = make_family_optimizer(clips)});
  }
}

TEST_F(EnqueuedSteps, OfReplicasAndUnequalCutsHaveAnEventForEveryOrder) {
  const std::vector<PlanShape> shapes = {
      {.cuts = {{}, {}, {}}, .owned = {3, 2, 1}},
      {.cuts = {{3}, {5}}, .owned = {4, 2}},
      {.schedule = ScheduleKind::kZbH1, .cuts = {{2, 5}}, .mask = "10101"},
      {.schedule = ScheduleKind::kGpipe, .cuts = {{4}}},
  };
  std::vector<Plan> plans;
  int devices = 0;
  for (const PlanShape& shape : shapes) {
    plans.push_back(make_small_plan(small_structure(), shape));
    plans.push_back(plans.back());
    plans.back().reduction = ReductionMode::kFast;
    devices = std::max(devices, devices_of(shape));
  }
  expect_ordered({.plans = plans, .devices = devices, .optimizer = make_family_optimizer(true)});
}

TEST_F(EnqueuedSteps, WithACacheHaveAnEventForEveryOrder) {
  std::vector<PlanShape> epochs;
  for (const char* mask : {"01111", "00111", "00111"}) {
    epochs.push_back({.cuts = {{5}, {6}}, .owned = {3, 3}, .mask = mask});
  }
  const Course expected = take_course(epochs, {.cache = ample_memory()});
  StreamOrder order(FRAZIL_FAKE_PLUGIN);
  const Course course = take_course(epochs, {.cache = ample_memory(),
                                             .devices = enqueued_streams(),
                                             .after_step = [&] { order.end_step(); }});
  EXPECT_EQ(order.faults(), std::vector<std::string>());
  EXPECT_EQ(course.weights, expected.weights);
  EXPECT_EQ(course.losses, expected.losses);
  EXPECT_EQ(course.counts.found, expected.counts.found);
  EXPECT_EQ(course.forwards, expected.forwards);
}

// Returns the faults of a two-stage run of which the watcher sees this much.
std::vector<std::string> faults_seen(StreamOrder::Sight sight) {
  StreamOrder order(FRAZIL_FAKE_PLUGIN, sight);
  const Plan plan = make_small_plan(small_structure(), {.cuts = {{4}}});
  take_steps({.plans = {plan, plan}, .devices = 2}, enqueued_streams(), [&] { order.end_step(); });
  return order.faults();
}

bool has_words(const std::vector<std::string>& faults, const std::string& words) {
  return std::any_of(faults.begin(), faults.end(), [&](const std::string& fault) {
    return fault.find(words) != std::string::npos;
  });
}

TEST_F(EnqueuedSteps, AMissingEventOrMarkOrWaitIsFound) {
  EXPECT_TRUE(faults_seen({}).empty());
  EXPECT_TRUE(has_words(faults_seen({.awaits = false}), "is not ordered behind"));
  EXPECT_TRUE(has_words(faults_seen({.marks = false}), "which the allocator has not been told"));
  EXPECT_TRUE(has_words(faults_seen({.host_waits = false}), "nobody has waited for stream"));
}

// The plan has two stages and four micro-batches.
PlanShape two_stages_of_four() {
  return {.schedule = ScheduleKind::kGpipe, .micro_batches = 4, .cuts = {{4}}, .owned = {4}};
}

std::int64_t waits_of_a_step(const OptimizerConfig& optimizer, const DeviceChoice& choice) {
  frazil::Run run(small_model(), optimizer, 7, 2, {.devices = choice});
  run.transition_to(make_small_plan(run.structure(), two_stages_of_four()));
  run.measure({.layers = true, .gradient_squares = true});
  const auto waits = [&] { return run.devices()[0].host_waits() + run.devices()[1].host_waits(); };
  const std::int64_t before = waits();
  run.step(0, 1e-2, small_micro_batches(0, 4));
  return waits() - before;
}

TEST_F(EnqueuedSteps, AreWaitedForOnceByEachDeviceAndOnceMoreForANorm) {
  EXPECT_EQ(waits_of_a_step({}, enqueued_streams()), 2);
  EXPECT_EQ(waits_of_a_step(make_family_optimizer(true), enqueued_streams()), 2 + 2);
  DeviceChoice waiting = enqueued_streams();
  waiting.waits = true;
  EXPECT_GT(waits_of_a_step({}, waiting), 50);
}

TEST_F(EnqueuedSteps, AskEventsUntilTheyHavePassed) {
  const Plan plan = make_small_plan(small_structure(), {.cuts = {{4}}});
  const Steps course{.plans = {plan, plan}, .devices = 2};
  const TakenSteps expected = take_steps(course, {});
  fake_.busy_answers = 3;
  EXPECT_EQ(take_steps(course, enqueued_streams()).weights, expected.weights);
  std::map<int, int> not_yet;  // by event
  for (const FakeCall& call : fake_.calls) {
    if (call.kind == Kind::kAskEvent && !call.answer) ++not_yet[call.event];
  }
  EXPECT_FALSE(not_yet.empty());
}

TEST_F(EnqueuedSteps, HaveTheSpansOfTheirListsInOrder) {
  frazil::Run run(small_model(), {}, 7, 2, {.devices = enqueued_streams()});
  run.transition_to(make_small_plan(run.structure(), two_stages_of_four()));
  run.step(0, 1e-2, small_micro_batches(0, 4), true);
  run.measure({.layers = true});
  const SteadyTime start = std::chrono::steady_clock::now();
  const StepResult result = run.step(1, 1e-2, small_micro_batches(1, 4), true);
  const Duration time = since(start);
  EXPECT_EQ(result.spans.size(), std::size_t{2 * (4 * 4 + 1)});
  std::map<std::pair<DeviceId, Lane>, TimePoint> ends;
  Duration device_work{0};
  for (const Span& span : result.spans) {
    EXPECT_LE(span.start, span.end) << to_text(span.action);
    TimePoint& end = ends.try_emplace({span.device, span.lane}, span.start).first->second;
    EXPECT_LE(end, span.start) << to_text(span.action);
    end = span.end;
    if (span.device == DeviceId{0} && span.lane == Lane::kCompute) device_work += span.duration();
  }
  EXPECT_LE(makespan({2, result.spans}), time);
  EXPECT_GT(device_work, Duration{0});
  Duration layers{0};
  for (const LayerSample& sample : run.take_layer_samples()) {
    EXPECT_GE(sample.duration, Duration{0});
    layers += sample.duration;
  }
  EXPECT_GT(layers, Duration{0});
  EXPECT_LE(layers, 2 * time);
}

TEST_F(EnqueuedSteps, AreNamedForProfilersByTheirActions) {
  frazil::Run run(small_model(), {}, 7, 2, {.devices = enqueued_streams()});
  run.transition_to(make_small_plan(run.structure(), two_stages_of_four()));
  run.step(0, 1e-2, small_micro_batches(0, 4));
  std::set<std::string> texts;
  int open = 0;
  for (const FakeCall& call : fake_.calls) {
    if (call.kind != Kind::kRange) continue;
    open += call.text.empty() ? -1 : 1;
    texts.insert(call.text);
  }
  EXPECT_EQ(open, 0);
  for (const char* text : {"0F0", "0SEND_F3", "1RECV_F2", "1B1", "0U"}) {
    EXPECT_TRUE(texts.contains(text)) << text;
  }
}

TEST_F(EnqueuedSteps, LeaveNoEventBehind) {
  const Plan plan = make_small_plan(small_structure(), {.cuts = {{3}, {5}}, .owned = {4, 2}});
  take_steps({.plans = {plan, plan, plan}, .devices = 4}, enqueued_streams());
  EXPECT_GT(fake_.events.size(), 0U);
  EXPECT_EQ(fake_.count_held_events(), 0);
}

TEST_F(EnqueuedSteps, AGpuThatNeverAnswersEndsAtTheDeadlineOfTheAction) {
  frazil::Run run(small_model(), {}, 7, 2,
                  {.deadline = std::chrono::seconds(2), .devices = enqueued_streams()});
  run.transition_to(make_small_plan(run.structure(), two_stages_of_four()));
  run.step(0, 1e-2, small_micro_batches(0, 4));
  fake_.stuck_stream = 1;
  EXPECT_EQ(failure_of([&] { run.step(3, 1e-2, small_micro_batches(3, 4)); }).sentence,
            "rank 1, step 3, action 1F0: device 1 has not done its work on GPU 0 within 2.000 s");
}

TEST_F(EnqueuedSteps, AGpusErrorNamesTheActionWhoseEventFails) {
  frazil::Run run(small_model(), {}, 7, 2, {.devices = enqueued_streams()});
  run.transition_to(make_small_plan(run.structure(), two_stages_of_four()));
  fake_.failing_stream = 0;
  fake_.asks_to_failure = 3;  // 0F0 and 0F1 have ended
  EXPECT_EQ(failure_of([&] { run.step(4, 1e-2, small_micro_batches(4, 4)); }).sentence,
            "rank 0, step 4, action 0F2: an illegal memory access was encountered");
}

TEST_F(EnqueuedSteps, AnErrorOfTheHostNamesTheActionThatItWasAt) {
  ModelSpec model = small_model();
  const auto forward = model.layers[2].forward;
  model.layers[2].forward = [forward](const LayerCall& call) {
    if (call.key.micro_batch == MicroBatchId{2}) throw std::runtime_error("no kernel for it");
    return forward(call);
  };
  frazil::Run run(model, {}, 7, 2, {.devices = enqueued_streams()});
  run.transition_to(make_small_plan(run.structure(), two_stages_of_four()));
  fake_.busy_answers = 1 << 20;
  EXPECT_EQ(failure_of([&] { run.step(0, 1e-2, small_micro_batches(0, 4)); }).sentence,
            "rank 0, step 0, action 0F2: no kernel for it");
}

TEST_F(EnqueuedSteps, TellOfAGradientThatIsNotFinite) {
  ModelSpec model = small_model();
  const auto loss = model.layers.back().loss;
  model.layers.back().loss = [loss](const Tensors& outputs, const at::Tensor& labels) {
    return loss(outputs, labels) * std::numeric_limits<float>::infinity();
  };
  for (const DeviceChoice& choice : {DeviceChoice(), enqueued_streams()}) {
    frazil::Run run(model, {}, 7, 2, {.devices = choice});
    run.transition_to(make_small_plan(run.structure(), two_stages_of_four()));
    const StepResult result = run.step(0, 1e-2, small_micro_batches(0, 4));
    EXPECT_EQ(result.non_finite_gradient, LayerId{kSmallLayers - 1});
    EXPECT_FALSE(std::isfinite(result.loss));
  }
}

// Sends a tensor from device 0 to device 1 and tells whether it lies in the same memory there.
bool keeps_memory(MessageKind kind, bool is_held) {
  const ComputeDevices devices(enqueued_streams(), 2);
  const auto world = on_devices(make_in_process_communicators(2), devices);
  at::Tensor tensor = at::ones({4});
  const void* const memory = tensor.const_data_ptr();
  const at::Tensor alias = is_held ? tensor.detach() : at::Tensor();
  Tensors sent;
  sent.push_back(std::move(tensor));
  world[0]->send(1, {.kind = kind}, std::move(sent));
  const Tensors received = world[1]->receive(0, {.kind = kind});
  EXPECT_TRUE(at::equal(received.at(0), at::ones({4})));
  return received.at(0).const_data_ptr() == memory;
}

// Gradients are added in place where nobody seems to hold them, and a receiver's host lets go of
// them before its stream has read them.
TEST_F(EnqueuedSteps, AGradientThatIsSentSharesNoMemoryWithWhatItsSenderHolds) {
  EXPECT_FALSE(keeps_memory(MessageKind::kActivationGradient, /*is_held=*/true));
  EXPECT_TRUE(keeps_memory(MessageKind::kActivationGradient, /*is_held=*/false));
  EXPECT_TRUE(keeps_memory(MessageKind::kActivation, /*is_held=*/true));
}

}  // namespace
}  // namespace frazil
