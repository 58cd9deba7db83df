// Runs have streams as devices, with the tests' plug-in in the place of GPUs. The plug-in notes
// what it is asked, when and by whom; the bits are those of a run on cores.

#include "exec/devices/compute_device.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "exec/communication/in_process_communicator.h"
#include "exec/devices/device_numerics.h"
#include "exec/devices/numerics.h"
#include "exec/profile/link_probe.h"
#include "exec/run/device_pool.h"
#include "profiles/error.h"
#include "tests/exec/devices/fake_accelerator.h"
#include "tests/exec/support/rank_failures.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

using Kind = FakeCall::Kind;

DeviceChoice fake_streams() {
  return {.kind = DeviceKind::kCuda, .gpus = {}, .splits = true, .plugin = FRAZIL_FAKE_PLUGIN};
}

// The host waits for these after every action.
DeviceChoice waiting_streams() {
  DeviceChoice choice = fake_streams();
  choice.waits = true;
  return choice;
}

class OnStreams : public testing::Test {
 protected:
  void SetUp() override { fake_.reset(); }
  void TearDown() override { fake_.reset(); }

  FakeAccelerator& fake_ = open_fake(FRAZIL_FAKE_PLUGIN);
};

OptimizerConfig clipping() {
  OptimizerConfig optimizer;
  optimizer.clip_norm = 0.5;
  return optimizer;
}

// Takes three steps; a second plan is in force from the third step on.
std::uint64_t hash_of(const DeviceChoice& choice, const std::vector<PlanShape>& shapes,
                      const OptimizerConfig& optimizer = {}) {
  int devices = 0;
  for (const PlanShape& shape : shapes) devices = std::max(devices, devices_of(shape));
  VitConfig model = small_config();
  model.dropout = 0.1;
  frazil::Run run(make_vit(model), optimizer, 7, devices, {.devices = choice});
  for (Step step = 0; step < 3; ++step) {
    if (step == 0) run.transition_to(make_small_plan(run.structure(), shapes.front()));
    if (step == 2) run.transition_to(make_small_plan(run.structure(), shapes.back()));
    run.step(step, 1e-2, small_micro_batches(step, shapes.front().micro_batches));
  }
  return run.weight_hash();
}

TEST_F(OnStreams, EveryPlanHasTheBitsOfCores) {
  const std::vector<PlanShape> shapes = {
      {.schedule = ScheduleKind::kGpipe, .cuts = {{4}}},
      {.schedule = ScheduleKind::kZbH1, .cuts = {{2, 5}}},
      {.cuts = {{3}, {5}}, .owned = {4, 2}},
      {.cuts = {{}, {}}, .owned = {3, 3}, .mask = "00111"},
  };
  for (const PlanShape& shape : shapes) {
    const std::uint64_t expected = hash_of({}, {shape}, clipping());
    EXPECT_EQ(hash_of(fake_streams(), {shape}, clipping()), expected);
    EXPECT_EQ(hash_of(waiting_streams(), {shape}, clipping()), expected);
  }
  const std::vector<PlanShape> moving = {shapes[0], shapes[3]};
  EXPECT_EQ(hash_of(fake_streams(), moving), hash_of({}, moving));
  EXPECT_EQ(hash_of(waiting_streams(), moving), hash_of({}, moving));
}

TEST_F(OnStreams, ADifferentStreamIsEnteredOnceByEachThread) {
  hash_of(waiting_streams(), {{.cuts = {{2, 5}}}});
  std::map<int, std::set<std::thread::id>> threads;  // by stream
  for (const FakeCall& call : fake_.calls) {
    if (call.kind == Kind::kAsk) threads[call.stream].insert(call.thread);
  }
  ASSERT_EQ(threads.size(), 3U);
  for (int stream = 0; stream < 3; ++stream) {
    EXPECT_EQ(fake_.count(Kind::kOpen, stream), 1);
    EXPECT_EQ(fake_.count(Kind::kEnter, stream), 1);
    EXPECT_EQ(fake_.count(Kind::kClose, stream), 1);
    ASSERT_EQ(threads[stream].size(), 1U) << "stream " << stream;
    const auto entered = std::find_if(
        fake_.calls.begin(), fake_.calls.end(),
        [&](const FakeCall& call) { return call.kind == Kind::kEnter && call.stream == stream; });
    EXPECT_EQ(entered->thread, *threads[stream].begin());
    const auto asked = std::find_if(
        fake_.calls.begin(), fake_.calls.end(),
        [&](const FakeCall& call) { return call.kind == Kind::kAsk && call.stream == stream; });
    EXPECT_LT(entered - fake_.calls.begin(), asked - fake_.calls.begin());
  }
  EXPECT_EQ(fake_.calls.back().kind, Kind::kClose);
}

// The plan has two stages and two micro-batches.
PlanShape two_stages() {
  return {.schedule = ScheduleKind::kGpipe, .micro_batches = 2, .cuts = {{4}}, .owned = {2}};
}

TEST_F(OnStreams, EachActionAndEachSendAndLossIsWaitedForIfTheHostIsToWait) {
  frazil::Run run(make_vit(small_config()), {}, 7, 2, {.devices = waiting_streams()});
  run.transition_to(make_small_plan(run.structure(), two_stages()));
  fake_.calls.clear();
  const StepResult result =
      run.step(0, 1e-2, small_micro_batches(0, two_stages().micro_batches), /*record=*/true);
  int actions[2] = {0, 0};
  for (const Span& span : result.spans) ++actions[span.device.index()];
  EXPECT_EQ(actions[0], 2 * 4 + 1) << "F SEND_F RECV_B B of two micro-batches, and U";
  EXPECT_EQ(fake_.count(Kind::kAsk, 0), actions[0] + 2) << "two sends";
  EXPECT_EQ(fake_.count(Kind::kAsk, 1), actions[1] + 2 + 2) << "two sends and two losses";
}

TEST_F(OnStreams, WhatIsReceivedIsMarkedForTheReceiver) {
  frazil::Run run(make_vit(small_config()), {}, 7, 2, {.devices = waiting_streams()});
  run.transition_to(make_small_plan(run.structure(), two_stages()));
  fake_.calls.clear();
  run.step(0, 1e-2, small_micro_batches(0, two_stages().micro_batches));
  EXPECT_EQ(fake_.count(Kind::kMark, 0), 2) << "a gradient of each micro-batch";
  EXPECT_EQ(fake_.count(Kind::kMark, 1), 2) << "an activation of each micro-batch";
  // The sender has asked and been told "done" before the receiver marks.
  for (std::size_t i = 0; i < fake_.calls.size(); ++i) {
    if (fake_.calls[i].kind != Kind::kMark || fake_.calls[i].stream != 1) continue;
    EXPECT_TRUE(std::any_of(fake_.calls.begin(), fake_.calls.begin() + static_cast<long>(i),
                            [](const FakeCall& call) {
                              return call.kind == Kind::kAsk && call.stream == 0 && call.answer;
                            }));
  }
}

TEST_F(OnStreams, AReductionMarksWhatOwnersShip) {
  frazil::Run run(make_vit(small_config()), {}, 7, 2, {.devices = waiting_streams()});
  run.transition_to(
      make_small_plan(run.structure(), {.micro_batches = 2, .cuts = {{}, {}}, .owned = {1, 1}}));
  fake_.calls.clear();
  run.step(0, 1e-2, small_micro_batches(0, 2));
  std::size_t parameters = 0;
  for (const LayerSpec& layer : run.model().layers) parameters += layer.parameters.size();
  // A device gets one node's share, then the peer's share of the sum; a parameter may lie in both
  // shares.
  for (const int stream : {0, 1}) {
    EXPECT_GE(fake_.count(Kind::kMark, stream), static_cast<int>(parameters));
    EXPECT_LE(fake_.count(Kind::kMark, stream), static_cast<int>(parameters) + 2);
  }
}

TEST_F(OnStreams, LayersThatMoveAreMarkedForTheirNewHolderAndSettled) {
  frazil::Run run(make_vit(small_config()), {}, 7, 2, {.devices = fake_streams()});
  run.transition_to(make_small_plan(run.structure(), two_stages()));
  fake_.calls.clear();
  run.transition_to(
      make_small_plan(run.structure(), {.micro_batches = 2, .cuts = {{3}}, .owned = {2}}));
  std::size_t held = 0;
  for (const auto& [layer, state] : run.pool().states()[1]) held += state.parameters.size();
  EXPECT_GE(fake_.count(Kind::kMark, 1), static_cast<int>(held));
  ASSERT_FALSE(fake_.calls.empty());
  EXPECT_EQ(fake_.calls.back().kind, Kind::kSettle);
}

TEST_F(OnStreams, ABusyStreamIsAskedAgain) {
  const std::uint64_t expected = hash_of({}, {{.cuts = {{4}}}});
  fake_.busy_answers = 3;
  EXPECT_EQ(hash_of(waiting_streams(), {{.cuts = {{4}}}}), expected);
  int done = 0;
  int asked = 0;
  for (const FakeCall& call : fake_.calls) {
    if (call.kind != Kind::kAsk) continue;
    ++asked;
    done += call.answer ? 1 : 0;
  }
  EXPECT_GT(done, 0);
  EXPECT_EQ(asked, 4 * done);
}

TEST_F(OnStreams, DevicesAreSpreadOverGpusInTurn) {
  const auto opened = [&](DeviceChoice choice, int devices) {
    fake_.streams.clear();
    const ComputeDevices made(choice, devices);
    std::vector<std::vector<int>> streams;
    for (const FakeStream& stream : fake_.streams) {
      streams.push_back({stream.gpu, stream.share, stream.shares});
    }
    return streams;
  };
  using Streams = std::vector<std::vector<int>>;
  EXPECT_EQ(opened(waiting_streams(), 2), (Streams{{0, 0, 2}, {0, 1, 2}}));
  fake_.gpus = 2;
  EXPECT_EQ(opened(waiting_streams(), 5),
            (Streams{{0, 0, 3}, {1, 0, 2}, {0, 1, 3}, {1, 1, 2}, {0, 2, 3}}));
  DeviceChoice second = waiting_streams();
  second.gpus = {1};
  second.splits = false;
  EXPECT_EQ(opened(second, 2), (Streams{{1, 0, 1}, {1, 0, 1}}));
}

TEST_F(OnStreams, TheLanesOfADeviceShareItsPart) {
  const ComputeDevices made(fake_streams(), 2);
  ASSERT_EQ(fake_.streams.size(), 2 * kDeviceLanes);
  for (std::size_t stream = 0; stream < fake_.streams.size(); ++stream) {
    const auto device = static_cast<int>(stream < 2 ? stream : (stream - 2) / (kDeviceLanes - 1));
    EXPECT_EQ(fake_.streams[stream].share, device);
    EXPECT_EQ(fake_.streams[stream].shares, 2);
    EXPECT_EQ(made[static_cast<std::size_t>(device)].place(), at::kCPU);
  }
  EXPECT_EQ(ComputeDevices(waiting_streams(), 2)[0].lanes(), nullptr);
  EXPECT_EQ(ComputeDevices({}, 2)[0].lanes(), nullptr);
}

TEST_F(OnStreams, TheyAreDescribed) {
  EXPECT_EQ(ComputeDevices(fake_streams(), 2).text(), "2 streams of Fake 0 (8 SMs each)");
  EXPECT_EQ(ComputeDevices(fake_streams(), 4).memory_per_device(), Bytes{std::int64_t{2} << 30});
  EXPECT_EQ(ComputeDevices({}, 2).text(), "2 cores");
  EXPECT_EQ(ComputeDevices({}, 1).text(), "1 core");
  EXPECT_EQ(count_devices(fake_streams()), 1);
  EXPECT_GE(count_devices({}), 1);
}

TEST_F(OnStreams, AGpuThatNeverAnswersEndsAtTheDeadline) {
  frazil::Run run(make_vit(small_config()), {}, 7, 1,
                  {.deadline = std::chrono::milliseconds(50), .devices = fake_streams()});
  run.transition_to(make_small_plan(run.structure(), {}));
  fake_.stuck_stream = 0;
  EXPECT_EQ(failure_of([&] { run.step(0, 1e-2, small_micro_batches(0, 6)); }).sentence,
            "rank 0, step 0, action 0F0: device 0 has not done its work on GPU 0 within 50.000 ms");
}

TEST_F(OnStreams, AnAbandonedWorldEndsTheWaitForAGpu) {
  fake_.stuck_stream = 0;
  ComputeDevices devices(fake_streams(), 1);
  std::thread other([&] { devices.abandon(); });
  const std::string sentence = failure_of([&] { devices[0].finish(); }).sentence;
  other.join();
  EXPECT_EQ(sentence, "device 0 stops, for another one has failed");
}

TEST_F(OnStreams, AnAbandonedWorldIsLeftForANewOne) {
  const DeviceChoice choice = fake_streams();
  const auto train = [&](bool loses) {
    DevicePool pool(make_vit(small_config()), {}, 7, {.devices = 2, .count = 2},
                    {.devices = choice});
    const auto enter = [&] {
      pool.join({.communicators = make_in_process_communicators(2), .process_of = {}});
    };
    enter();
    pool.prepare(make_small_plan(pool.structure(), two_stages()));
    (void)pool.take();
    pool.adopt();
    const auto step = [&](Step number) {
      (void)pool.step({.step = number, .learning_rate = 1e-2}, small_micro_batches(number, 2), {});
    };
    step(0);
    if (loses) {
      pool.abort("rank 2 is lost: its process has ended");
      EXPECT_NE(failure_of([&] { step(1); }).sentence.find("rank 2 is lost"), std::string::npos);
      enter();
    }
    step(1);
    step(2);
    return pool.digests();
  };
  EXPECT_EQ(train(true), train(false));
}

TEST_F(OnStreams, WhatAnAbandonedDeviceWasGivenIsWaitedForInTheNewWorld) {
  ComputeDevices devices(fake_streams(), 1, std::chrono::milliseconds(50));
  EXPECT_FALSE(devices.renew());
  fake_.stuck_stream = 0;
  devices.abandon();
  EXPECT_EQ(failure_of([&] { devices[0].finish(); }).sentence,
            "device 0 stops, for another one has failed");
  EXPECT_TRUE(devices.renew());
  EXPECT_EQ(failure_of([&] { devices[0].finish(); }).sentence,
            "device 0 has not done its work on GPU 0 within 50.000 ms");
  fake_.stuck_stream = -1;
  devices[0].finish();
}

TEST_F(OnStreams, AGpusErrorNamesRankStepAndAction) {
  frazil::Run run(make_vit(small_config()), {}, 7, 2, {.devices = waiting_streams()});
  run.transition_to(make_small_plan(run.structure(), two_stages()));
  fake_.failing_stream = 0;
  fake_.asks_to_failure = 2;  // F, then SEND_F
  EXPECT_EQ(failure_of([&] { run.step(4, 1e-2, small_micro_batches(4, 2)); }).sentence,
            "rank 0, step 4, action 0SEND_F0: an illegal memory access was encountered");
}

TEST_F(OnStreams, EvaluationAndProbesWorkThere) {
  const auto evaluate = [](const DeviceChoice& choice) {
    frazil::Run run(make_vit(small_config()), {}, 7, 2, {.devices = choice});
    run.transition_to(make_small_plan(run.structure(), two_stages()));
    return run.evaluate(small_micro_batches(9, 1).front(), 2).loss;
  };
  EXPECT_EQ(evaluate(fake_streams()), evaluate({}));
  fake_.reset();
  const ComputeDevices devices(fake_streams(), 2);
  EXPECT_GT(probe_link(devices, 5).link.bandwidth.count, 0);
  EXPECT_EQ(fake_.count(Kind::kEnter, 0), 1);
  EXPECT_GT(fake_.count(Kind::kMark, 0), 0);
}

TEST_F(OnStreams, NumericsAreCheckedOnEach) {
  const ComputeDevices devices(fake_streams(), 3);
  EXPECT_EQ(check_numerics(devices), std::nullopt);
  for (const int stream : {0, 1, 2}) EXPECT_EQ(fake_.count(Kind::kEnter, stream), 1);
}

TEST(DeterministicKernels, AreSwitchedOnWithTheFirstStream) {
  open_fake(FRAZIL_FAKE_PLUGIN).reset();
  const ComputeDevices devices(fake_streams(), 1);
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_FALSE(at::globalContext().deterministicAlgorithmsWarnOnly());
  EXPECT_FALSE(at::globalContext().deterministicFillUninitializedMemory());
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
}

}  // namespace
}  // namespace frazil
