// A run performs the plan, action for action and in its order, and has the actions of the simulated
// time line: under every schedule of the menu, with replicas, recomputing and shared stages. A
// REDUCE_GRAD of the time line has a span for each group of its layers; a run has one for all.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "planner/actions/message.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "tests/exec/support/family_plans.h"

namespace frazil {
namespace {

constexpr BytesPerSecond kBandwidth{1'000'000'000};  // so that a SEND takes time

struct Placed {
  std::string name;
  ScheduleKind kind = ScheduleKind::kGpipe;
  int devices = 2;
  bool clip = false;
  Plan plan = {};
};

const ModelProfile& timed_profile() {
  static const ModelProfile profile = with_times(make_structure(make_vit(small_config()), 2));
  return profile;
}

// Places schedules on two devices and four, with nothing frozen, a frozen prefix and frozen layers
// in between, with a barrier and without.
std::vector<Placed> place_all() {
  struct Case {
    int devices;
    const char* mask;
    bool clip;
  };
  std::vector<Placed> all;
  for (const ScheduleFacts& facts : all_schedules()) {
    for (const auto& [devices, mask, clip] : {Case{2, "11111", false}, Case{2, "10101", true},
                                              Case{4, "11111", true}, Case{4, "00111", false}}) {
      const FamilyForm form{facts.kind, devices, chunks_of(facts).front(), 8, mask};
      all.push_back({.name = name_of(form),
                     .kind = facts.kind,
                     .devices = devices,
                     .clip = clip && facts.versions == WeightVersions::kSync,
                     .plan = place_family(form, timed_profile())});
    }
  }
  return all;
}

// Places what a plan of one pipeline with a device for each stage has not: replicas of other cuts
// and shares, stages that recompute, stages on two devices, and all of these together.
std::vector<Placed> place_shapes(ScheduleKind kind, const std::string& mask) {
  const PlanShape one{kind, 7, {{4}}, {7}, mask};
  const PlanShape two{kind, 7, {{4}, {3}}, {4, 3}, mask};
  const PlanShape equal{kind, 8, {{4}, {4}}, {4, 4}, mask};
  std::vector<Placed> all;
  const auto add = [&](const std::string& name, const PlanShape& shape, int devices,
                       const std::function<void(Plan&)>& change) {
    Placed placed{.name = std::string(schedule_name(kind)) + ", mask " + mask + ", " + name,
                  .kind = kind,
                  .devices = devices,
                  .clip = all.size() % 2 != 0,
                  .plan = make_small_plan(timed_profile(), shape)};
    change(placed.plan);
    all.push_back(std::move(placed));
  };
  const auto recompute = [](Plan& plan, std::size_t pipeline, std::size_t stage) {
    plan.pipelines[pipeline].stages[stage].memory = MemoryPolicy::kRecompute;
  };
  const auto share = [](Plan& plan, std::size_t pipeline, std::size_t stage, int device) {
    plan.pipelines[pipeline].stages[stage].devices.emplace_back(device);
  };
  add("two replicas", two, 4, [](Plan&) {});
  add("two equal replicas", equal, 4, [](Plan&) {});
  add("the first stage recomputes", one, 2, [&](Plan& plan) { recompute(plan, 0, 0); });
  add("both stages recompute", one, 2, [&](Plan& plan) {
    for (std::size_t s = 0; s < 2; ++s) recompute(plan, 0, s);
  });
  add("the first stage shared", one, 3, [&](Plan& plan) { share(plan, 0, 0, 2); });
  add("the last stage shared", one, 3, [&](Plan& plan) { share(plan, 0, 1, 2); });
  add("a replica with a shared stage, one that recomputes", two, 5, [&](Plan& plan) {
    share(plan, 0, 0, 4);
    for (std::size_t s = 0; s < 2; ++s) recompute(plan, 1, s);
  });
  return all;
}

std::vector<Span> perform(const Placed& placed) {
  Run run(make_vit(small_config()), make_family_optimizer(placed.clip), 7, placed.devices);
  run.transition_to(placed.plan);
  return run.step(0, 1e-2, small_micro_batches(0, placed.plan.micro_batches()), /*record=*/true)
      .spans;
}

// Returns the lists that the simulator lowers.
Schedule plan_lists(const Placed& placed) {
  const ModelProfile& profile = timed_profile();
  const Activity activity = find_activity(profile, placed.plan.mask);
  return complete_schedule(make_schedule(placed.plan, placed.devices), placed.plan, profile,
                           activity, placed.clip);
}

void expect_planned_order(const std::vector<Span>& spans, const Placed& placed) {
  Schedule performed;
  performed.devices.resize(static_cast<std::size_t>(placed.devices));
  std::vector<TimePoint> ends(performed.devices.size());
  for (const Span& span : spans) {
    performed.devices[span.device.index()].push_back(span.action);
    EXPECT_LE(ends[span.device.index()], span.start) << "one after the other";
    ends[span.device.index()] = span.end;
  }
  EXPECT_EQ(to_text(performed), to_text(plan_lists(placed)));
}

// The actions of a lane are in order of time.
using LaneActions = std::map<std::pair<DeviceId, Lane>, std::vector<std::string>>;

LaneActions list_lanes(const std::vector<Span>& spans, const std::set<Lane>& lanes) {
  LaneActions listed;
  for (const Span& span : spans) {
    if (!lanes.contains(span.lane) || span.action.kind == ActionKind::kBarrier) continue;
    listed[{span.device, span.lane}].push_back(to_text(span.action));
  }
  return listed;
}

// A stage reduces each group of its layers by itself.
LaneActions list_reductions(const std::vector<Span>& spans) {
  LaneActions listed = list_lanes(spans, {Lane::kCollective});
  for (auto& [lane, actions] : listed) {
    std::sort(actions.begin(), actions.end());
    actions.erase(std::unique(actions.begin(), actions.end()), actions.end());
  }
  return listed;
}

std::vector<Message> list_messages(const std::vector<Span>& spans, bool (*is_side)(const Action&)) {
  std::vector<Message> messages;
  for (const Span& span : spans) {
    if (is_side(span.action)) messages.push_back(message_of(span.action));
  }
  std::sort(messages.begin(), messages.end());
  return messages;
}

// A RECV takes no time of its own in the simulator: there is one for each SEND.
void expect_same_actions(const std::vector<Span>& measured, const std::vector<Span>& simulated) {
  const std::set<Lane> lanes = {Lane::kCompute, Lane::kSend};
  EXPECT_EQ(list_lanes(measured, lanes), list_lanes(simulated, lanes));
  EXPECT_EQ(list_reductions(measured), list_reductions(simulated));
  EXPECT_EQ(list_messages(measured, is_receive), list_messages(simulated, is_send));
}

// Every device that updates passes a barrier once the other devices have come to theirs; the
// simulator's updates begin together after everything else.
void expect_barrier(const std::vector<Span>& measured, const std::vector<Span>& simulated) {
  std::map<DeviceId, int> barriers;
  std::map<DeviceId, int> expected;
  TimePoint last_entry;
  TimePoint first_update = TimePoint::max();
  for (const Span& span : measured) {
    if (span.action.kind == ActionKind::kBarrier) {
      ++barriers[span.device];
      last_entry = std::max(last_entry, span.start);
    } else if (span.action.kind == ActionKind::kUpdate) {
      expected[span.device] = 1;
      first_update = std::min(first_update, span.start);
    }
  }
  EXPECT_EQ(barriers, expected);
  EXPECT_LE(last_entry, first_update);
  TimePoint last_other;
  first_update = TimePoint::max();
  for (const Span& span : simulated) {
    if (span.action.kind == ActionKind::kUpdate) {
      first_update = std::min(first_update, span.start);
    } else if (span.lane == Lane::kCompute || span.lane == Lane::kCollective) {
      last_other = std::max(last_other, span.end);
    }
  }
  EXPECT_EQ(first_update, last_other);
}

void expect_planned_and_simulated(const Placed& placed) {
  SCOPED_TRACE(placed.name + (placed.clip ? ", clipped" : ""));
  const std::vector<Span> measured = perform(placed);
  expect_planned_order(measured, placed);
  const Cluster cluster = make_family_cluster(placed.devices, kBandwidth);
  const std::vector<Span> simulated =
      simulate_plan(placed.plan, {timed_profile(), cluster}, {.clip = placed.clip}).timeline.spans;
  expect_same_actions(measured, simulated);
  if (placed.clip) expect_barrier(measured, simulated);
}

TEST(ExecutedOrder, IsThePlannedOneAndHasTheActionsOfTheSimulatedTimeLineForEverySchedule) {
  std::set<ScheduleKind> seen;
  std::set<ScheduleKind> seen_clipped;
  for (const Placed& placed : place_all()) {
    expect_planned_and_simulated(placed);
    (placed.clip ? seen_clipped : seen).insert(placed.kind);
  }
  EXPECT_EQ(seen.size(), all_schedules().size()) << "all that the menu lists";
  EXPECT_EQ(seen_clipped.size(), synchronous_schedules().size());
}

TEST(ExecutedOrder, IsThePlannedOneWithReplicasRecomputingAndSharedStages) {
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                                  ScheduleKind::kEagerOneForwardOneBackward, ScheduleKind::kZbH1}) {
    for (const char* mask : {"11111", "00111"}) {
      for (const Placed& placed : place_shapes(kind, mask)) expect_planned_and_simulated(placed);
    }
  }
}

TEST(ExecutedOrder, HasNoBarrierWhereUpdatesStandAmongTheBackwards) {
  for (const ScheduleKind kind : {ScheduleKind::kPipeDream, ScheduleKind::kPipeDream2Bw}) {
    const Plan plan = place_family({.kind = kind}, timed_profile());
    frazil::Run run(make_vit(small_config()), make_family_optimizer(/*clip=*/true), 7, 2);
    EXPECT_THROW(run.transition_to(plan), InfeasibleError) << schedule_name(kind);
  }
}

}  // namespace
}  // namespace frazil
