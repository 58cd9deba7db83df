// Tests stages that share every micro-batch by samples, from the plan to the answer.

#include <gtest/gtest.h>

#include <functional>

#include "planner/actions/validate_plan.h"
#include "planner/lowering/footprint.h"
#include "planner/plan/reduction_groups.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "tests/planner/support/parse_schedule.h"
#include "tests/planner/support/shared_plans.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

TEST(SlicedStages, FollowATimeLineByHand) {
  const Plan plan = make_sliced_plan({2, 1}, 2, 4, {});
  const ModelProfile profile = make_shared_model(2);
  const Cluster cluster = make_shared_cluster(3);
  const Timeline timeline = simulate_plan(plan, {profile, cluster}).timeline;
  // Each device of stage 0 has 2 of 4 samples: F 20, W 20; stage 1 has F 40, B 80. A hop takes 1,
  // the ring of two devices two hops.
  EXPECT_EQ(list_spans(timeline, 0),
            "0F0.0 0-20 0F1.0 20-40 0B0.0 142-162 0B1.0 262-282 0REDUCE_GRAD 282-284 0U 284-288");
  EXPECT_EQ(list_spans(timeline, 1),
            "0F0.1 0-20 0F1.1 20-40 0B0.1 142-162 0B1.1 262-282 0REDUCE_GRAD 282-284 0U 284-288");
  EXPECT_EQ(list_spans(timeline, 2), "1F0 21-61 1B0 61-141 1F1 141-181 1B1 181-261 1U 261-265");
}

TEST(SlicedStages, SendToEachSliceWhatItLacksAndNameBothEnds) {
  const ModelProfile profile = make_shared_model(3);
  const Plan plan = make_sliced_plan({2, 3, 1}, 1, 6, {.kind = ScheduleKind::kGpipe});
  const Activity activity = find_activity(profile, plan.mask);
  // The 6 samples are sliced as 0 1 2 and 3 4 5 in stage 0, as 0 1, 2 3 and 4 5 in stage 1.
  EXPECT_EQ(to_text(complete_schedule(make_schedule(plan, 6), plan, profile, activity)),
            "d0: 0F0.0 0SEND_F0.0>1.0 0SEND_F0.0>1.1 0RECV_B0.0>1.0 0RECV_B0.0>1.1 0B0.0 "
            "0REDUCE_GRAD 0U\n"
            "d1: 0F0.1 0SEND_F0.1>1.1 0SEND_F0.1>1.2 0RECV_B0.1>1.1 0RECV_B0.1>1.2 0B0.1 "
            "0REDUCE_GRAD 0U\n"
            "d2: 1RECV_F0.0>0.0 1F0.0 1SEND_F0.0 1RECV_B0.0 1B0.0 1SEND_B0.0>0.0 "
            "1REDUCE_GRAD 1U\n"
            "d3: 1RECV_F0.1>0.0 1RECV_F0.1>0.1 1F0.1 1SEND_F0.1 1RECV_B0.1 1B0.1 "
            "1SEND_B0.1>0.0 1SEND_B0.1>0.1 1REDUCE_GRAD 1U\n"
            "d4: 1RECV_F0.2>0.1 1F0.2 1SEND_F0.2 1RECV_B0.2 1B0.2 1SEND_B0.2>0.1 "
            "1REDUCE_GRAD 1U\n"
            "d5: 2RECV_F0>1.0 2RECV_F0>1.1 2RECV_F0>1.2 2F0 2B0 2SEND_B0>1.0 2SEND_B0>1.1 "
            "2SEND_B0>1.2 2U\n");
}

TEST(SlicedStages, RunTheListOfAStageOnOneDeviceOnEachOfTheirs) {
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                                  ScheduleKind::kEagerOneForwardOneBackward, ScheduleKind::kZbH1}) {
    for (int micro_batches = 1; micro_batches <= 7; ++micro_batches) {
      SCOPED_TRACE(std::string(schedule_name(kind)) + ", " + std::to_string(micro_batches));
      const Schedule sliced =
          make_schedule(make_sliced_plan({2, 1, 3}, micro_batches, 3, {kind}), 6);
      const Schedule plain =
          make_schedule(make_sliced_plan({1, 1, 1}, micro_batches, 3, {kind}), 3);
      const std::vector<std::pair<std::size_t, int>> expected{{0, 0}, {0, 1}, {1, -1},
                                                              {2, 0}, {2, 1}, {2, 2}};
      for (std::size_t d = 0; d < expected.size(); ++d) {
        std::vector<Action> list = plain.devices[expected[d].first];
        for (Action& action : list) {
          if (expected[d].second >= 0) action.slice = expected[d].second;
        }
        EXPECT_EQ(sliced.devices[d], list) << "device " << d;
      }
    }
  }
}

// Makes blocks of a frozen teacher, each with its student. The student is taught by the output of
// its teacher block and reads the output of the block before, over detached edges, so nothing comes
// back.
ModelProfile make_teacher_and_student(int blocks) {
  ModelProfile profile = make_shared_model(2 * blocks);
  profile.edges.clear();
  for (int i = 0; i < blocks; ++i) {
    const LayerId teacher{2 * i};
    profile.layers[teacher.index() + 1].has_loss = true;
    const auto connect = [&](int to, EdgeKind kind) {
      profile.edges.push_back({teacher, LayerId{to}, kind, {Bytes{10}}});
    };
    connect(2 * i + 1, EdgeKind::kDetached);
    if (i + 1 == blocks) continue;
    connect(2 * i + 2, EdgeKind::kGradient);
    connect(2 * i + 3, EdgeKind::kDetached);
  }
  return profile;
}

// This is Pipe-BD's hybrid distribution with decoupled updates: two devices share the first block,
// and neither waits for the other stage.
TEST(SlicedStages, RelayATeacherFromTwoDevicesToOne) {
  const ModelProfile profile = make_teacher_and_student(2);
  Plan plan = make_shared_plan({2, 1}, 2, 3, {});
  plan.micro_batch_size = 4;
  plan.batch_size = 12;
  plan.mask = FreezeMask::parse("0101", "test", 0);
  plan.reduction = ReductionMode::kFast;
  plan.pipelines[0].stages[0].axis = DeviceAxis::kSamples;
  const Cluster cluster = make_shared_cluster(3);
  const Timeline timeline = simulate_plan(plan, {profile, cluster}).timeline;
  EXPECT_EQ(list_spans(timeline, 0),
            "0F0.0 0-40 0F1.0 40-80 0B0.0 80-100 0F2.0 100-140 0B1.0 140-160 0B2.0 160-180 "
            "0REDUCE_GRAD 180-182 0U 182-186");
  EXPECT_EQ(list_spans(timeline, 2),
            "1F0 41-121 1B0 121-161 1F1 161-241 1B1 241-281 1F2 281-361 1B2 361-401 1U 401-405");
  EXPECT_EQ(draw(timeline, nanoseconds(20)),
            "d0 |0011a22bc            |\n"
            "d1 |0011a22bc            |\n"
            "d2 |  0000aa1111bb2222cc |\n");
}

TEST(SlicedStages, HoldTheStashAndReceiveTheSamplesOfTheirSlice) {
  const ModelProfile profile = make_shared_model(2);
  Plan plan = make_sliced_plan({2, 1}, 2, 5, {});
  const Cluster cluster = make_shared_cluster(3);
  const std::vector<MemoryPeak> memory = simulate_plan(plan, {profile, cluster}).memory;
  // A device holds 1000 of parameters, 2000 of optimizer state and a running sum. Two micro-batches
  // in flight of 2 and 3 samples are less than a second sum in the ring.
  EXPECT_EQ(memory[0].total, Bytes{4000 + 1000});
  EXPECT_EQ(memory[1].total, Bytes{4000 + 1000});
  EXPECT_EQ(memory[2].total, Bytes{4000 + 500});

  plan = make_sliced_plan({2, 3}, 1, 6, {.kind = ScheduleKind::kGpipe});
  const Activity frozen{.layers = std::vector<LayerActivity>(2), .edge_carries = {false}};
  const auto received = [&](int device) {
    return find_footprint(plan, PipelineId{0}, StageId{1}, DeviceId{device}, profile, frozen)
        .receive_per_micro_batch;
  };
  EXPECT_EQ(received(2), Bytes{20});
  EXPECT_EQ(received(4), Bytes{20});
  plan.pipelines[0].stages[1].devices = {DeviceId{0}, DeviceId{1}, DeviceId{2}};
  // Device 0 made samples 0 and 1 itself, device 1 made 3 of 2 and 3, device 2 made none.
  EXPECT_EQ(received(0), Bytes{0});
  EXPECT_EQ(received(1), Bytes{10});
  EXPECT_EQ(received(2), Bytes{20});
}

TEST(SlicedStages, ReduceInARingAmongAllTheirDevices) {
  const ModelProfile profile = make_shared_model(2);
  const Plan plan = make_sliced_plan({3, 1}, 2, 4, {});
  const auto groups = find_reduction_groups(plan, profile, find_activity(profile, plan.mask));
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].collective.kind, CollectiveKind::kRingAllReduce);
  EXPECT_EQ(groups[0].collective.devices.size(), 3U);
  for (const LayerHolder& owner : groups[0].owners) {
    EXPECT_EQ(owner.micro_batches, plan.pipelines[0].micro_batches);
  }
}

TEST(SlicedStages, AreToldInTheSummary) {
  EXPECT_EQ(summarize(make_sliced_plan({2, 1}, 3, 4, {})),
            "2 stages x 1 pipeline on 2 sliced+1 devices, 1f1b, 3 micro-batches of 4, cut 1");
}

std::string refuse(const Plan& plan, int devices) {
  try {
    make_schedule(plan, devices);
  } catch (const InfeasibleError& error) {
    return error.what();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SlicedStages, OfOtherSchedulesAreRefusedInOneSentence) {
  for (const ScheduleFacts& facts : all_schedules()) {
    Plan plan = make_sliced_plan({2, 1}, 4, 4, {.kind = facts.kind});
    plan.versions = facts.versions;
    const std::string name(schedule_name(facts.kind));
    const bool takes = name == "gpipe" || name == "1f1b" || name == "eager-1f1b" || name == "zb-h1";
    EXPECT_EQ(refuse(plan, 3), takes ? "accepted"
                                     : name +
                                           " takes no stages on several devices; gpipe, 1f1b, "
                                           "eager-1f1b and zb-h1 do");
  }
}

TEST(SlicedStages, ThatCannotBeAreRefusedInOneSentence) {
  struct Refusal {
    std::string sentence;
    std::function<void(Plan&)> plant;
  };
  const auto lists = [](const std::string& text) {
    return [text](Plan& plan) {
      plan.schedule = ExplicitSchedule{parse_schedule(text, "test").devices};
    };
  };
  const std::string last = "d2: 1F0 1B0 1F1 1B1\n";
  const std::string others = "d1: 0F0.1 0B0.1 0F1.1 0B1.1\n" + last;
  const std::vector<Refusal> refusals{
      {"accepted", [](Plan&) {}},
      {"accepted", lists("d0: 0F0.0 0B0.0 0F1.0 0B1.0\n" + others)},
      {"stage 0 of pipeline 0 shares micro-batches by samples, which goes with the reduction fast, "
       "not exact",
       [](Plan& plan) { plan.reduction = ReductionMode::kExact; }},
      {"stage 0 of pipeline 0 shares micro-batches by samples among 2 devices, but micro-batch 1 "
       "has 1",
       [](Plan& plan) { plan.batch_size = 5; }},
      {"1f1b over stages on several devices takes one stage per device, not stages 0 and 1 of "
       "pipeline 0 on device 1",
       [](Plan& plan) { plan.pipelines[0].stages[1].devices = {DeviceId{1}}; }},
      {"1f1b with 2 chunks per device takes no stages on several devices",
       [](Plan& plan) { plan.schedule = NamedSchedule{.chunks = 2}; }},
      {"1f1b goes with the weight versions sync, not stash",
       [](Plan& plan) { plan.versions = WeightVersions::kStash; }},
      {"schedule: found 0F0 on device 0, expected slice 0, which this device has of its stage",
       lists("d0: 0F0 0F1.0\n" + others)},
      {"schedule: found 0F0.1 on device 0, expected slice 0, which this device has of its stage",
       lists("d0: 0F0.1 0F1.0\n" + others)},
      {"schedule: found 1F0.0 on device 2, expected whole micro-batches of a stage that does not "
       "share them by samples",
       lists("d0: 0F0.0 0F1.0\nd1: 0F0.1 0F1.1\nd2: 1F0.0 1F1\n")},
      {"schedule: found no 0F1.1 on any device, expected every owned micro-batch in every stage",
       lists("d0: 0F0.0 0F1.0\nd1: 0F0.1\n" + last)},
  };
  for (const Refusal& refusal : refusals) {
    Plan plan = make_sliced_plan({2, 1}, 2, 4, {});
    refusal.plant(plan);
    EXPECT_EQ(refuse(plan, 3), refusal.sentence);
  }
  const ModelProfile profile = make_shared_model(2);
  Plan plan = make_sliced_plan({3, 1}, 2, 4, {});
  plan.batch_size = 6;
  plan.model_hash = model_hash(profile);
  const Cluster cluster = make_shared_cluster(4);
  try {
    validate(plan, {profile, cluster}, "plan.json");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "plan.json: found micro-batch 1 of 2 samples at $.pipelines[0].stages[0].axis, "
                 "expected a sample for each of the stage's 3 devices");
  }
}

}  // namespace
}  // namespace frazil
