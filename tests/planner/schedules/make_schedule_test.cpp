#include "planner/schedules/make_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "planner/actions/schedule_check.h"
#include "planner/plan/schedule_facts.h"
#include "planner/what_if/what_if.h"
#include "profiles/error.h"
#include "tests/planner/support/parse_schedule.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

MicroBatches interval(int first, int last) { return {MicroBatchId{first}, MicroBatchId{last}}; }

// Makes `stages` stages of one layer each, stage s on device s, with micro-batches of one sample.
Plan linear_plan(ScheduleKind kind, int stages, int micro_batches) {
  std::vector<LayerId> cuts;
  std::vector<DeviceId> devices;
  for (int s = 0; s < stages; ++s) {
    if (s > 0) cuts.push_back(LayerId{s});
    devices.push_back(DeviceId{s});
  }
  Plan plan;
  plan.batch_size = micro_batches;
  plan.mask = FreezeMask::all_active(stages);
  plan.pipelines = {make_pipeline(stages, cuts, devices, interval(0, micro_batches - 1))};
  plan.schedule = NamedSchedule{.kind = kind};
  return plan;
}

Activity activity_of(int layers, const FreezeMask& mask) {
  using std::chrono::milliseconds;
  return find_activity(make_chain(layers, milliseconds{1}, milliseconds{1}, milliseconds{1}), mask);
}

// Returns the synchronous families of one chunk per device with fused backwards.
std::vector<ScheduleFacts> fused_families() {
  return {facts_of(ScheduleKind::kGpipe), facts_of(ScheduleKind::kOneForwardOneBackward),
          facts_of(ScheduleKind::kEagerOneForwardOneBackward)};
}

std::string picture(const Plan& plan, int devices) { return to_text(make_schedule(plan, devices)); }

TEST(Schedules, GpipeDoesAllForwardsThenAllBackwards) {
  EXPECT_EQ(picture(linear_plan(ScheduleKind::kGpipe, 3, 4), 3),
            "d0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n"
            "d1: 1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3\n"
            "d2: 2F0 2F1 2F2 2F3 2B0 2B1 2B2 2B3\n");
}

TEST(Schedules, OneForwardOneBackwardAlternatesAfterItsWarmUp) {
  EXPECT_EQ(picture(linear_plan(ScheduleKind::kOneForwardOneBackward, 3, 4), 3),
            "d0: 0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
            "d1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n"
            "d2: 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3\n");
}

TEST(Schedules, FewMicroBatchesShortenTheWarmUp) {
  EXPECT_EQ(picture(linear_plan(ScheduleKind::kOneForwardOneBackward, 3, 1), 3),
            "d0: 0F0 0B0\n"
            "d1: 1F0 1B0\n"
            "d2: 2F0 2B0\n");
}

TEST(Schedules, EightInFlightOverFourStagesSpreadTheWarmUp) {
  Plan plan = linear_plan(ScheduleKind::kOneForwardOneBackward, 4, 8);
  plan.schedule = NamedSchedule{.in_flight = 8};
  // The warm-ups are w = 8, 1 + ceil(14/3) = 6, 1 + ceil(7/3) = 4 and 1.
  EXPECT_EQ(picture(plan, 4),
            "d0: 0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 0B0 0B1 0B2 0B3 0B4 0B5 0B6 0B7\n"
            "d1: 1F0 1F1 1F2 1F3 1F4 1F5 1B0 1F6 1B1 1F7 1B2 1B3 1B4 1B5 1B6 1B7\n"
            "d2: 2F0 2F1 2F2 2F3 2B0 2F4 2B1 2F5 2B2 2F6 2B3 2F7 2B4 2B5 2B6 2B7\n"
            "d3: 3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7\n");
}

TEST(Schedules, InFlightCountsOnASingleStageToo) {
  Plan plan = linear_plan(ScheduleKind::kOneForwardOneBackward, 1, 4);
  EXPECT_EQ(picture(plan, 1), "d0: 0F0 0B0 0F1 0B1 0F2 0B2 0F3 0B3\n");
  plan.schedule = NamedSchedule{.in_flight = 3};
  EXPECT_EQ(picture(plan, 1), "d0: 0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n");
}

TEST(Schedules, EagerWarmsUpTwiceAsDeep) {
  EXPECT_EQ(picture(linear_plan(ScheduleKind::kEagerOneForwardOneBackward, 3, 6), 3),
            "d0: 0F0 0F1 0F2 0F3 0F4 0B0 0F5 0B1 0B2 0B3 0B4 0B5\n"
            "d1: 1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1B4 1B5\n"
            "d2: 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5\n");
}

TEST(Schedules, ReplicasKeepGlobalMicroBatchesInAscendingOrder) {
  Plan plan = linear_plan(ScheduleKind::kGpipe, 2, 5);
  plan.pipelines.push_back(make_pipeline(2, {}, {DeviceId{3}}, interval(2, 3)));
  plan.pipelines[0].micro_batches = {interval(0, 1), interval(4, 4)};
  EXPECT_EQ(picture(plan, 4),
            "d0: 0F0 0F1 0F4 0B0 0B1 0B4\n"
            "d1: 1F0 1F1 1F4 1B0 1B1 1B4\n"
            "d2:\n"
            "d3: 1:0F2 1:0F3 1:0B2 1:0B3\n");
}

TEST(Schedules, PipelineWithoutMicroBatchesDoesNothing) {
  Plan plan = linear_plan(ScheduleKind::kOneForwardOneBackward, 2, 1);
  plan.pipelines.push_back(
      make_pipeline(2, {LayerId{1}}, {DeviceId{2}, DeviceId{3}}, interval(1, 0)));
  EXPECT_EQ(picture(plan, 4), "d0: 0F0 0B0\nd1: 1F0 1B0\nd2:\nd3:\n");
}

TEST(Schedules, ShortLastBatchHasFewerMicroBatches) {
  Plan plan = linear_plan(ScheduleKind::kGpipe, 1, 3);
  plan.batch_size = 17;
  plan.micro_batch_size = 8;
  EXPECT_EQ(plan.micro_batches(), 3);
  EXPECT_EQ(picture(plan, 1), "d0: 0F0 0F1 0F2 0B0 0B1 0B2\n");
}

TEST(Schedules, PipelinesOnTheSameDevicesFollowEachOther) {
  Plan plan = linear_plan(ScheduleKind::kOneForwardOneBackward, 2, 2);
  plan.pipelines[0].micro_batches = {interval(0, 0)};
  plan.pipelines.push_back(
      make_pipeline(2, {LayerId{1}}, {DeviceId{1}, DeviceId{0}}, interval(1, 1)));
  EXPECT_EQ(picture(plan, 2),
            "d0: 0F0 0B0 1:1F1 1:1B1\n"
            "d1: 1F0 1B0 1:0F1 1:0B1\n");
}

TEST(Schedules, GpipeReturnsToADevice) {
  Plan plan = linear_plan(ScheduleKind::kGpipe, 3, 2);
  plan.pipelines[0].stages[2].devices = {DeviceId{0}};
  EXPECT_EQ(picture(plan, 2),
            "d0: 0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n"
            "d1: 1F0 1F1 1B0 1B1\n");
}

TEST(Schedules, AStageThatRecomputesDoesSoRightBeforeItsBackward) {
  Plan plan = linear_plan(ScheduleKind::kOneForwardOneBackward, 2, 2);
  plan.pipelines[0].stages[0].memory = MemoryPolicy::kRecompute;
  EXPECT_EQ(picture(plan, 2),
            "d0: 0F0 0F1 0R0 0B0 0R1 0B1\n"
            "d1: 1F0 1B0 1F1 1B1\n");
}

TEST(Schedules, TwoDirectionsAreTwoPipelinesOfThePlan) {
  Plan plan = linear_plan(ScheduleKind::kChimera, 2, 2);
  plan.pipelines[0].micro_batches = {interval(0, 0)};
  plan.pipelines.push_back(
      make_pipeline(2, {LayerId{1}}, {DeviceId{1}, DeviceId{0}}, interval(1, 1)));
  EXPECT_EQ(picture(plan, 2),
            "d0: 0F0 1:1F1 1:1B1 0B0\n"
            "d1: 1:0F1 1F0 1B0 1:0B1\n");
}

TEST(Schedules, ExplicitScheduleIsReturnedAsItIs) {
  Plan plan = linear_plan(ScheduleKind::kGpipe, 2, 2);
  const Schedule given =
      parse_schedule("d0: 0F0 0F1 0B1 0B0\nd1: 1F0 1F1 1I1 1I0 1W0 1W1\n", "text");
  plan.schedule = ExplicitSchedule{given.devices};
  EXPECT_EQ(make_schedule(plan, 2), given);
  plan.schedule = ExplicitSchedule{parse_schedule("d0: 0F0 0F0\nd1:\n", "text").devices};
  EXPECT_THROW(make_schedule(plan, 2), InputError);
}

TEST(Schedules, MenuListsEveryKindOnceAndEachCanBeMade) {
  std::set<ScheduleKind> listed;
  for (const ScheduleFacts& facts : all_schedules()) {
    SCOPED_TRACE(schedule_name(facts.kind));
    EXPECT_TRUE(listed.insert(facts.kind).second);
    EXPECT_FALSE(facts.one_line.empty());
    WhatIf what_if;
    what_if.stages = 4;
    what_if.micro_batches = 8;
    what_if.schedule = facts.kind;
    what_if.forward = what_if.backward_input = what_if.backward_weight = {Duration{1}};
    const WhatIfInputs inputs = make_what_if(what_if);
    const Setting setting{inputs.profile, inputs.cluster};
    const Schedule schedule = make_schedule(inputs.plan, 4, setting);
    EXPECT_NO_THROW(validate_schedule(schedule, inputs.plan,
                                      find_activity(inputs.profile, inputs.plan.mask), "schedule"));
    EXPECT_EQ(parse_schedule(to_text(schedule), "text"), schedule);
  }
  for (const ScheduleFacts& facts : all_schedules()) {
    EXPECT_EQ(listed.count(facts.kind), 1U) << facts.name;
  }
}

struct Refusal {
  std::string sentence;
  std::function<void(Plan&)> plant;
};

TEST(Schedules, RefusesInOneSentenceWhatIsNotInterpreted) {
  const std::vector<Refusal> refusals{
      {"zb-h2 takes no stages on several devices; gpipe, 1f1b, eager-1f1b and zb-h1 do",
       [](Plan& p) {
         p.pipelines[0].stages[1].devices = {DeviceId{1}, DeviceId{3}};
         p.schedule = NamedSchedule{.kind = ScheduleKind::kZbH2};
       }},
      {"1f1b with 2 chunks per device takes no stages on several devices",
       [](Plan& p) {
         p.pipelines[0].stages[1].devices = {DeviceId{1}, DeviceId{3}};
         p.schedule = NamedSchedule{.chunks = 2};
       }},
      {"1f1b over stages on several devices takes one stage per device, not stages 1 and 2 of "
       "pipeline 0 on device 2",
       [](Plan& p) {
         p.pipelines[0].stages[1].devices = {DeviceId{1}, DeviceId{2}};
       }},
      {"stage 1 of pipeline 0 shares its devices along an axis other than data and samples, which "
       "is not "
       "interpreted yet",
       [](Plan& p) { p.pipelines[0].stages[1].axis = DeviceAxis::kTensor; }},
      {"stage 0 of pipeline 0 has the memory policy offload, which is not interpreted yet",
       [](Plan& p) { p.pipelines[0].stages[0].memory = MemoryPolicy::kOffload; }},
      {"1f1b goes with the weight versions sync, not stash",
       [](Plan& p) { p.versions = WeightVersions::kStash; }},
      {"pipedream goes with the weight versions stash, not sync",
       [](Plan& p) { p.schedule = NamedSchedule{.kind = ScheduleKind::kPipeDream}; }},
      {"varuna recomputes every stage but the last; stage 0 of pipeline 0 keeps its stash",
       [](Plan& p) { p.schedule = NamedSchedule{.kind = ScheduleKind::kVaruna}; }},
      {"zb-v with 2 chunks per device does not fit 3 stages on 3 devices",
       [](Plan& p) { p.schedule = NamedSchedule{.kind = ScheduleKind::kZbV, .chunks = 2}; }},
      {"interleaved-1f1b (placement looped) places stage 1 of pipeline 0 on device 1, not on "
       "device "
       "0",
       [](Plan& p) {
         p.pipelines[0] =
             make_pipeline(4, {LayerId{1}, LayerId{2}, LayerId{3}},
                           {DeviceId{0}, DeviceId{0}, DeviceId{1}, DeviceId{1}}, interval(0, 3));
         p.schedule = NamedSchedule{.kind = ScheduleKind::kInterleaved, .chunks = 2};
       }},
      {"chimera runs both ways: each pipeline needs a second one of as many stages after it",
       [](Plan& p) { p.schedule = NamedSchedule{.kind = ScheduleKind::kChimera}; }},
      {"a dispatch policy decides by times, which are not known here",
       [](Plan& p) { p.schedule = DispatchPolicy::kLrtf; }},
      {"1f1b with 2 chunks per device does not fit 3 stages on 3 devices",
       [](Plan& p) { p.schedule = NamedSchedule{.chunks = 2}; }},
      {"in-flight 3 is not defined for gpipe, which fixes it itself",
       [](Plan& p) { p.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe, .in_flight = 3}; }},
      {"1f1b with 1 chunk per device does not fit 3 stages on 2 devices",
       [](Plan& p) { p.pipelines[0].stages[2].devices = {DeviceId{0}}; }},
  };
  for (const Refusal& refusal : refusals) {
    Plan plan = linear_plan(ScheduleKind::kOneForwardOneBackward, 3, 4);
    refusal.plant(plan);
    try {
      make_schedule(plan, 3);
      ADD_FAILURE() << "made although: " << refusal.sentence;
    } catch (const InfeasibleError& error) {
      EXPECT_EQ(error.what(), refusal.sentence);
    }
  }
}

// Runs every device's list in order with F of 1 and B of 2 time units and returns the time of the
// last end, or -1 if the lists block each other. It knows nothing of schedules.
int run_in_order(const Schedule& schedule, int stages) {
  std::map<std::tuple<int, int, bool>, int> end;  // by stage, micro-batch, is backward
  std::vector<std::size_t> next(schedule.devices.size(), 0);
  std::vector<int> free_at(schedule.devices.size(), 0);
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t d = 0; d < schedule.devices.size(); ++d) {
      if (next[d] == schedule.devices[d].size()) continue;
      const Action& action = schedule.devices[d][next[d]];
      const bool backward = action.kind == ActionKind::kBackward;
      const int stage = action.stage.value;
      const int m = action.micro_batches->first.value;
      const bool first = backward ? stage == stages - 1 : stage == 0;
      const auto before = end.find({backward ? stage + 1 : stage - 1, m, backward});
      if (!first && before == end.end()) continue;
      const int start = std::max(free_at[d], first ? 0 : before->second);
      free_at[d] = start + (backward ? 2 : 1);
      end[{stage, m, backward}] = free_at[d];
      ++next[d];
      moved = true;
    }
  }
  for (std::size_t d = 0; d < schedule.devices.size(); ++d) {
    if (next[d] != schedule.devices[d].size()) return -1;
  }
  return *std::max_element(free_at.begin(), free_at.end());
}

TEST(Schedules, LinearFamiliesTakeTheTimeOfTheClosedForm) {
  // Equal stages with F = 1, B = 2 and free transfers take (m + p - 1)(F + B).
  for (int stages = 1; stages <= 6; ++stages) {
    for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
      for (const ScheduleFacts& facts : fused_families()) {
        SCOPED_TRACE(std::string(schedule_name(facts.kind)) + " p " + std::to_string(stages) +
                     " m " + std::to_string(micro_batches));
        const Schedule schedule =
            make_schedule(linear_plan(facts.kind, stages, micro_batches), stages);
        EXPECT_EQ(run_in_order(schedule, stages), (micro_batches + stages - 1) * 3);
      }
    }
  }
}

TEST(Schedules, NoInFlightDepthBlocksAndTheWarmUpIsItsPeak) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int in_flight = 1; in_flight <= 14; ++in_flight) {
      const int micro_batches = 9;
      Plan plan = linear_plan(ScheduleKind::kOneForwardOneBackward, stages, micro_batches);
      plan.schedule = NamedSchedule{.in_flight = in_flight};
      SCOPED_TRACE("p " + std::to_string(stages) + " K " + std::to_string(in_flight));
      const Schedule schedule = make_schedule(plan, stages);
      EXPECT_NE(run_in_order(schedule, stages), -1);
      for (int s = 0; s < stages; ++s) {
        int held = 0;
        int peak = 0;
        for (const Action& action : schedule.devices[static_cast<std::size_t>(s)]) {
          held += action.kind == ActionKind::kForward ? 1 : -1;
          peak = std::max(peak, held);
        }
        // `raised` becomes the smallest integer not below the real quotient.
        int raised = 0;
        while (stages > 1 && raised * (stages - 1) < (in_flight - 1) * (stages - 1 - s)) ++raised;
        const int warm_up = stages == 1 ? in_flight : std::min(in_flight, 1 + raised);
        EXPECT_EQ(peak, std::min(micro_batches, warm_up)) << "stage " << s;
      }
    }
  }
}

// Draws one to three replicas with their own cuts, and deals micro-batches one by one.
Plan random_plan(std::mt19937_64& random, int layers) {
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  Plan plan;
  plan.batch_size = 1 + below(9);
  plan.mask = FreezeMask::all_active(layers);
  for (int block = 0; block + 1 < layers; ++block)
    plan.mask.set_active(BlockId{block}, below(2) == 1);
  const auto families = fused_families();
  plan.schedule = NamedSchedule{
      .kind = families[static_cast<std::size_t>(below(static_cast<int>(families.size())))].kind};
  int device = 0;
  for (int p = 1 + below(3); p > 0; --p) {
    std::vector<LayerId> cuts;
    std::vector<DeviceId> devices{DeviceId{device++}};
    for (int layer = 1; layer < layers; ++layer) {
      if (below(3) != 0) continue;
      cuts.push_back(LayerId{layer});
      devices.push_back(DeviceId{device++});
    }
    plan.pipelines.push_back(make_pipeline(layers, cuts, devices, interval(0, -1)));
  }
  for (int m = 0; m < plan.batch_size; ++m) {
    const auto owner = static_cast<std::size_t>(below(static_cast<int>(plan.pipelines.size())));
    plan.pipelines[owner].micro_batches.push_back(interval(m, m));
  }
  return plan;
}

int devices_of(const Plan& plan) {
  std::size_t devices = 0;
  for (const Pipeline& pipeline : plan.pipelines) devices += pipeline.stages.size();
  return static_cast<int>(devices);
}

TEST(Schedules, EveryGeneratedScheduleOfRandomPlansIsValid) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Plan plan = random_plan(random, 7);
    EXPECT_NO_THROW(validate_schedule(make_schedule(plan, devices_of(plan)), plan,
                                      activity_of(7, plan.mask), "schedule"));
  }
}

TEST(Schedules, EveryDamageToAScheduleIsFound) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Plan plan = random_plan(random, 7);
    plan.mask = FreezeMask::all_active(7);
    const Activity activity = activity_of(7, plan.mask);
    const Schedule whole = make_schedule(plan, devices_of(plan));
    std::size_t device = random() % whole.devices.size();
    while (whole.devices[device].empty()) device = (device + 1) % whole.devices.size();
    const std::size_t place = random() % whole.devices[device].size();
    const auto offset = static_cast<std::ptrdiff_t>(place);
    const auto refused = [&](const Schedule& schedule) {
      EXPECT_THROW(validate_schedule(schedule, plan, activity, "schedule"), InputError)
          << to_text(schedule);
    };

    Schedule dropped = whole;
    dropped.devices[device].erase(dropped.devices[device].begin() + offset);
    refused(dropped);

    Schedule doubled = whole;
    doubled.devices[device].insert(doubled.devices[device].begin() + offset,
                                   whole.devices[device][place]);
    refused(doubled);

    Schedule swapped = whole;
    std::vector<Action>& list = swapped.devices[device];
    const Action first = list.front();
    for (Action& action : list) {
      if (action.kind != ActionKind::kBackward || action.micro_batches != first.micro_batches)
        continue;
      std::swap(action, list.front());
      break;
    }
    refused(swapped);

    if (whole.devices.size() > 1) {
      Schedule moved = dropped;
      moved.devices[(device + 1) % whole.devices.size()].push_back(whole.devices[device][place]);
      refused(moved);
    }
  }
}

}  // namespace
}  // namespace frazil
