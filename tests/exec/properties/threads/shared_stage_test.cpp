// Stages on several devices share whole micro-batches, and messages of schedules keep the order in
// which they are sent; both have the bits of one device.

#include <gtest/gtest.h>

#include <random>

#include "exec/state/optimizer.h"
#include "profiles/error.h"
#include "tests/exec/support/changing_rate.h"
#include "tests/exec/support/small_vit.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

struct SharedStageCase {
  std::vector<int> devices;  // by stage
  ScheduleKind kind = ScheduleKind::kOneForwardOneBackward;
  int micro_batches = 6;
  std::string mask = "11111";
};

std::string name_of(const SharedStageCase& one) {
  std::string name(schedule_name(one.kind));
  for (const int count : one.devices) name += " " + std::to_string(count);
  return name + ", " + std::to_string(one.micro_batches) + " micro-batches, mask " + one.mask;
}

// Makes AdamW, or SGD with momentum; both clip.
OptimizerConfig make_optimizer(int index) {
  OptimizerConfig optimizer;
  optimizer.learning_rate = 1e-2;
  optimizer.clip_norm = 0.5;
  if (index % 2 != 0) {
    optimizer.kind = OptimizerConfig::Kind::kSgd;
    optimizer.momentum = 0.9;
  }
  return optimizer;
}

Plan place(const SharedStageCase& one, const ModelProfile& structure) {
  PlanShape shape{.micro_batches = one.micro_batches,
                  .cuts = {{}},
                  .owned = {one.micro_batches},
                  .mask = one.mask};
  shape.schedule = one.kind;
  const int stages = static_cast<int>(one.devices.size());
  for (int s = 1; s < stages; ++s) shape.cuts[0].push_back(s * kSmallLayers / stages);
  Plan plan = make_small_plan(structure, shape);
  std::int32_t next = 0;
  for (int s = 0; s < stages; ++s) {
    Stage& stage = plan.pipelines[0].stages[static_cast<std::size_t>(s)];
    stage.devices.clear();
    for (int d = 0; d < one.devices[static_cast<std::size_t>(s)]; ++d) {
      stage.devices.emplace_back(next++);
    }
  }
  return plan;
}

// Takes three steps with dropout, each at another rate, the last one short.
std::uint64_t hash_of(const SharedStageCase& one, int optimizer, const RunOptions& options = {}) {
  VitConfig config = small_config();
  config.dropout = 0.1;
  Run run(make_vit(config), make_optimizer(optimizer), 7, 4, options);
  run.transition_to(place(one, run.structure()));
  for (Step step = 0; step < 3; ++step) {
    const int cut_short = step == 2 ? 1 : 0;
    run.step(step, changing_rate(make_optimizer(optimizer), step, 3),
             small_micro_batches(step, one.micro_batches - cut_short, cut_short));
  }
  return run.weight_hash();
}

TEST(SharedStages, EqualOneDeviceBitForBit) {
  const unsigned seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int combinations = 0;
  for (const int micro_batches : {5, 6, 8, 12}) {
    if (kThreadsAreWatched && micro_batches != 5) continue;
    for (const std::string mask : {"11111", "00111", "10101"}) {
      std::map<int, std::uint64_t> expected;
      for (const int optimizer : {0, 1}) {
        expected[optimizer] = hash_of({{1}, ScheduleKind::kGpipe, micro_batches, mask}, optimizer);
      }
      for (const ScheduleKind kind :
           {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
            ScheduleKind::kEagerOneForwardOneBackward, ScheduleKind::kZbH1}) {
        for (const std::vector<int>& devices :
             std::vector<std::vector<int>>{{2}, {2, 1}, {1, 2}, {1, 3}, {2, 2}, {1, 2, 1}}) {
          const SharedStageCase one{devices, kind, micro_batches, mask};
          SCOPED_TRACE(name_of(one));
          const auto optimizer = static_cast<int>(random() % 2);
          ++combinations;
          EXPECT_EQ(hash_of(one, optimizer), expected[optimizer]);
        }
      }
    }
  }
  EXPECT_EQ(combinations, (kThreadsAreWatched ? 1 : 4) * 3 * 4 * 6);
}

// There are more devices than micro-batches, and a device that has none joins reduction and update.
TEST(SharedStages, ADeviceWithoutAMicroBatchKeepsUp) {
  const std::uint64_t expected = hash_of({{1}, ScheduleKind::kGpipe, 2}, 1);
  EXPECT_EQ(hash_of({{3, 1}, ScheduleKind::kOneForwardOneBackward, 2}, 1), expected);
  EXPECT_EQ(hash_of({{1, 3}, ScheduleKind::kOneForwardOneBackward, 2}, 1), expected);
}

TEST(SharedStages, ArePerformedInThePlannedOrder) {
  const SharedStageCase one{{2, 1}, ScheduleKind::kOneForwardOneBackward, 6};
  frazil::Run run(make_vit(small_config()), {}, 7, 3);
  const Plan plan = place(one, run.structure());
  const StepProgram program = make_program(plan, run.structure(), 3, false);
  run.transition_to(plan);
  Schedule performed;
  performed.devices.resize(3);
  for (const Span& span : run.step(0, 1e-2, small_micro_batches(0, 6), true).spans) {
    performed.devices[span.device.index()].push_back(span.action);
  }
  EXPECT_EQ(to_text(performed), to_text(program.schedule));
}

TEST(MessageOrder, AsSentChangesNoBit) {
  const RunOptions as_sent{.order = MessageOrder::kAsSent};
  const std::uint64_t expected = hash_of({{1}, ScheduleKind::kGpipe, 6}, 0);
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                                  ScheduleKind::kEagerOneForwardOneBackward, ScheduleKind::kZbH1}) {
    for (const std::vector<int>& devices :
         std::vector<std::vector<int>>{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 1, 1, 1}}) {
      const SharedStageCase one{devices, kind, 6};
      SCOPED_TRACE(name_of(one));
      EXPECT_EQ(hash_of(one, 0, as_sent), expected);
    }
  }
}

TEST(MessageOrder, ListsThatWaitForEachOtherAreRefusedBeforeTraining) {
  frazil::Run run(make_vit(small_config()), {}, 7, 2);
  Plan plan = place({{1, 1}, ScheduleKind::kGpipe, 2}, run.structure());
  ExplicitSchedule lists;
  lists.devices.resize(2);
  // Device 0 wants the gradient of micro-batch 0 before it sends what that needs.
  for (const char* text : {"0F1", "0B1", "0F0", "0B0"}) {
    lists.devices[0].push_back(parse_action(text));
  }
  for (const char* text : {"1F0", "1B0", "1F1", "1B1"}) {
    lists.devices[1].push_back(parse_action(text));
  }
  plan.schedule = lists;
  try {
    run.transition_to(plan);
    FAIL() << "nothing was thrown";
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "the lists of the devices wait for each other: device 0 stands at 0B1 and waits "
                 "for 0RECV_B1, device 1 stands at 1F0 and waits for 1RECV_F0");
  }
}

}  // namespace
}  // namespace frazil
