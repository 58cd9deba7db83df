#include "planner/prediction/idle_time.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>

#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/what_if.h"
#include "sim/collective_cost.h"
#include "sim/cost_model.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

constexpr Bytes kPlenty{1'000'000'000};

struct Explained {
  Schedule schedule;  // as completed
  Timeline timeline;
  Duration makespan{0};
  std::vector<DeviceTime> devices;
};

Explained explain(const Plan& plan, const ModelProfile& profile, const Cluster& cluster,
                  bool clip = false) {
  Explained explained;
  const Activity activity = find_activity(profile, plan.mask);
  const auto devices = static_cast<int>(cluster.devices.size());
  const Setting setting{profile, cluster};
  explained.schedule =
      complete_schedule(make_schedule(plan, devices, setting), plan, profile, activity, clip);
  const LoweredStep step = lower(plan, explained.schedule, setting, activity);
  const Simulation simulation = simulate(step.graph, setting, step.actions);
  explained.timeline = make_timeline(step.graph, simulation, step.actions, devices);
  explained.makespan = simulation.makespan;
  explained.devices =
      split_makespan(step, simulation, price_all(step.graph, setting).of_work, devices);
  return explained;
}

Explained explain(const WhatIf& what_if) {
  const WhatIfInputs inputs = make_what_if(what_if);
  return explain(inputs.plan, inputs.profile, inputs.cluster);
}

// Makes a question from the times of F, B (all of it I) and a hop, in ns.
WhatIf make_question(ScheduleKind kind, int stages, int micro_batches, Duration forward,
                     Duration backward, Duration hop) {
  WhatIf what_if;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.schedule = kind;
  what_if.forward = {forward};
  what_if.backward_input = {backward};
  what_if.backward_weight = {Duration{0}};
  what_if.hop = hop;
  return what_if;
}

void expect_whole(const Explained& explained) {
  for (std::size_t device = 0; device < explained.devices.size(); ++device) {
    SCOPED_TRACE("device " + std::to_string(device));
    const DeviceTime& time = explained.devices[device];
    EXPECT_EQ(total(time), explained.makespan);
    EXPECT_EQ(time.compute, busy(explained.timeline, DeviceId{device}));
    for (const Duration part : {time.exposed_communication, time.wait_upstream,
                                time.wait_downstream, time.update, time.fill, time.drain}) {
      EXPECT_GE(part, Duration{0});
    }
  }
  EXPECT_EQ(total(sum(explained.devices)),
            explained.makespan * static_cast<std::int64_t>(explained.devices.size()));
}

TEST(IdleTime, SplitsTwoStagesAndTwoMicroBatchesAsThePictureShows) {
  const Explained explained = explain(make_question(
      ScheduleKind::kOneForwardOneBackward, 2, 2, nanoseconds(2), nanoseconds(3), nanoseconds(1)));
  // Device d0 waits for 0B0 of d1 until 8 and 1 more for its hop, then for 0B1 until 13 and 1 more.
  EXPECT_EQ(draw(explained.timeline, nanoseconds(1)),
            "d0 |0011     aaa  bbb|\n"
            "d1 |   00aaa11bbb    |\n");
  EXPECT_EQ(explained.devices,
            (std::vector<DeviceTime>{
                {.compute = nanoseconds(10),
                 .exposed_communication = nanoseconds(2),
                 .wait_downstream = nanoseconds(5)},
                {.compute = nanoseconds(10), .fill = nanoseconds(3), .drain = nanoseconds(4)}}));
  expect_whole(explained);
}

TEST(IdleTime, CountsAsFillAndDrainOfGpipeItsWayDownAndBack) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int p = static_cast<int>(random() % 8) + 1;
    const int m = static_cast<int>(random() % 12) + 1;
    const Duration f{random() % 1'000 + 1};
    const Duration b{random() % 1'000 + 1};
    const Duration c{random() % 300};
    const Explained explained = explain(make_question(ScheduleKind::kGpipe, p, m, f, b, c));
    for (int s = 0; s < p; ++s) {
      SCOPED_TRACE("stage " + std::to_string(s));
      // Stage s begins s hops and forwards late and ends as many hops and backwards early. Between
      // its last F and its first B the last micro-batch goes down and comes back; of that way only
      // the last hop counts as communication.
      const int below = p - 1 - s;
      const Duration exposed = below == 0 ? Duration{0} : c;
      const DeviceTime expected = {.compute = m * (f + b),
                                   .exposed_communication = exposed,
                                   .wait_downstream = below * (f + b + 2 * c) - exposed,
                                   .fill = s * (f + c),
                                   .drain = s * (b + c)};
      EXPECT_EQ(explained.devices[static_cast<std::size_t>(s)], expected);
    }
    // The fill of all devices is (p - 1)(F + hop) for each of p / 2 pairs of a first and a last
    // stage.
    EXPECT_EQ(2 * sum(explained.devices).fill, p * (p - 1) * (f + c));
    expect_whole(explained);
  }
}

// Device d0 sends F0 and F1 over a link that each message holds for 100 ns, so F1's message waits
// for its turn.
TEST(IdleTime, CountsTheTurnOnALinkTheTransferAndTheHopAsCommunication) {
  const ModelProfile profile = make_chain(2, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  const Cluster cluster =
      make_uniform_cluster(2, kPlenty, {nanoseconds(7), BytesPerSecond{100'000'000}});
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = 2;
  plan.mask = FreezeMask::all_active(2);
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  plan.pipelines = {make_pipeline(2, {LayerId{1}}, {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{0}, MicroBatchId{1}})};
  const Explained explained = explain(plan, profile, cluster);
  // The spans of d1 are 0F0 117-127, 0F1 217-227, 1B0 until 247, 1B1 until 267. Its gradients leave
  // at 247 and 347 (1B1's waits for its turn), arrive at 354 and 454, and are W of 10 ns on d0.
  EXPECT_EQ(explained.makespan, nanoseconds(464));
  EXPECT_EQ(explained.devices,
            (std::vector<DeviceTime>{{.compute = nanoseconds(40),
                                      .exposed_communication = nanoseconds(107 + 90),
                                      .wait_downstream = nanoseconds(247 - 20)},
                                     {.compute = nanoseconds(60),
                                      .exposed_communication = nanoseconds(217 - 127),
                                      .fill = nanoseconds(117),
                                      .drain = nanoseconds(464 - 267)}}));
  expect_whole(explained);
}

// A producer of the pair below: the time that it works and the time that its message travels.
struct Producer {
  Duration duration;
  Duration hop;
};

Action stage_action(int stage, ActionKind kind, int micro_batch) {
  return make_action(PipelineId{0}, StageId{stage}, kind, MicroBatchId{micro_batch});
}

// Returns the split of d2, which does F6 in 2 ns and then the pair of F7 and B3. Its inputs come
// from d0, which does F7, and from d1, which does B3, alone or in a pair with another F.
DeviceTime split_of_pair(Producer forward, Producer gradient) {
  const Action backward = stage_action(2, ActionKind::kBackward, 3);
  std::vector<DeviceTime> splits;
  for (const Action& on_d1 :
       {backward, make_pair_action(stage_action(2, ActionKind::kForward, 5), backward)}) {
    LoweredStep step;
    TaskGraph& graph = step.graph;
    const auto add = [&](LaneId lane, Duration duration, const Action& action) {
      step.actions.push_back(action);
      return graph.add_task(lane, graph.add_work(Fixed{duration}));
    };
    for (int d = 0; d < 3; ++d) graph.add_lane(DeviceId{d}, Lane::kCompute);
    const TaskId from_d0 = add(0, forward.duration, stage_action(0, ActionKind::kForward, 7));
    const TaskId from_d1 = add(1, gradient.duration, on_d1);
    add(2, nanoseconds(2), stage_action(1, ActionKind::kForward, 6));
    const TaskId pair = add(2, nanoseconds(3),
                            make_pair_action(stage_action(1, ActionKind::kForward, 7),
                                             stage_action(1, ActionKind::kBackward, 3)));
    graph.add_dependency(pair, from_d1, graph.add_work(Fixed{gradient.hop}));
    graph.add_dependency(pair, from_d0, graph.add_work(Fixed{forward.hop}));
    const ModelProfile without_layers;
    const Cluster cluster = make_uniform_cluster(3, kPlenty, {});
    const Setting setting{without_layers, cluster};
    const Simulation simulation = simulate(graph, setting);
    splits.push_back(split_makespan(step, simulation, price_all(graph, setting).of_work, 3).at(2));
  }
  EXPECT_EQ(splits[0], splits[1]);
  return splits[0];
}

TEST(IdleTime, APairWaitsForTheHalfWhoseInputArrivesLast) {
  const Producer gradient{nanoseconds(18), nanoseconds(2)};  // arrives at 20
  const DeviceTime waited_downstream = {.compute = nanoseconds(5),
                                        .exposed_communication = nanoseconds(2),
                                        .wait_downstream = nanoseconds(16)};
  EXPECT_EQ(split_of_pair({nanoseconds(5), nanoseconds(14)}, gradient), waited_downstream);
  EXPECT_EQ(split_of_pair({nanoseconds(5), nanoseconds(16)}, gradient),
            (DeviceTime{.compute = nanoseconds(5),
                        .exposed_communication = nanoseconds(16),
                        .wait_upstream = nanoseconds(3)}));
  // Both messages arrive at 20. The producer that ended last counts, and the F's if both end
  // together.
  EXPECT_EQ(split_of_pair({nanoseconds(5), nanoseconds(15)}, gradient), waited_downstream);
  EXPECT_EQ(split_of_pair({nanoseconds(18), nanoseconds(2)}, gradient),
            (DeviceTime{.compute = nanoseconds(5),
                        .exposed_communication = nanoseconds(2),
                        .wait_upstream = nanoseconds(16)}));
}

TEST(IdleTime, WaitsForReductionsCountAsUpdate) {
  ModelProfile profile = make_chain(2, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  for (Layer& layer : profile.layers) layer.update = nanoseconds(4);
  const Cluster cluster =
      make_uniform_cluster(2, kPlenty, {nanoseconds(50), BytesPerSecond{1'000'000'000}});
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = 3;
  plan.mask = FreezeMask::all_active(2);
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  for (int d = 0; d < 2; ++d) {
    plan.pipelines.push_back(
        make_pipeline(2, {}, {DeviceId{d}}, {MicroBatchId{d}, MicroBatchId{2 * d}}));
  }
  const Explained explained = explain(plan, profile, cluster);
  // Device 0 does one of three micro-batches, device 1 two. A micro-batch takes F 20, I 10 and W
  // 20.
  const Duration reduction =
      collective_cost(
          {CollectiveKind::kExactTreeAllReduce, {DeviceId{0}, DeviceId{1}}, Bytes{2000}, {1, 2}},
          cluster)
          .time;
  EXPECT_EQ(explained.devices,
            (std::vector<DeviceTime>{
                {.compute = nanoseconds(50 + 8), .update = nanoseconds(50) + reduction},
                {.compute = nanoseconds(100 + 8), .update = reduction}}));
  expect_whole(explained);
}

// d0 |0  aU|   d1 |  0a   U|: with a barrier d1 updates only when d0 has its gradients too.
TEST(IdleTime, WaitsForTheBarrierCountAsUpdate) {
  ModelProfile profile = make_chain(2, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  for (Layer& layer : profile.layers) layer.update = nanoseconds(5);
  const Cluster cluster = make_uniform_cluster(3, kPlenty, {});
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.mask = FreezeMask::all_active(2);
  plan.schedule = NamedSchedule{};
  plan.pipelines = {make_pipeline(2, {LayerId{1}}, {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{0}, MicroBatchId{0}})};
  const Explained explained = explain(plan, profile, cluster, true);
  EXPECT_EQ(explained.devices,
            (std::vector<DeviceTime>{
                {.compute = nanoseconds(25), .wait_downstream = nanoseconds(30)},
                {.compute = nanoseconds(35), .update = nanoseconds(10), .fill = nanoseconds(10)},
                {.fill = nanoseconds(55)},  // does nothing
            }));
  expect_whole(explained);
}

// Applies the same definitions to names and times of the time line alone, for pipelines of pure
// latency.
class ByName {
 public:
  ByName(const Explained& explained, const Plan& plan, Duration hop) : plan_(plan), hop_(hop) {
    for (const Span& span : explained.timeline.spans) {
      if (span.lane != Lane::kCompute) continue;
      spans_[to_text(span.action)].push_back(span);
      record(span.action, span.end);
    }
  }

  DeviceTime split(const std::vector<Action>& list, Duration makespan) const {
    DeviceTime time;
    std::optional<TimePoint> before;
    std::map<std::string, std::size_t> done;  // PipeDream updates a stage more than once
    for (const Action& action : list) {
      if (!is_compute(action.kind)) continue;
      const std::string text = to_text(action);
      const Span& span = spans_.at(text).at(done[text]++);
      time.compute += span.duration();
      if (!before) time.fill = span.start.time_since_epoch();
      if (before && *before < span.start) wait(action, *before, span.start, time);
      before = span.end;
    }
    time.drain = makespan - before->time_since_epoch();
    return time;
  }

 private:
  using Key = std::tuple<bool, PipelineId, StageId, MicroBatchId>;  // is it an F?

  static std::vector<Action> halves_of(const Action& action) {
    const auto* pair = std::get_if<ActionPair>(&action.detail);
    return pair == nullptr ? std::vector<Action>{action} : pair->halves;
  }

  static bool hands_back(ActionKind kind) {
    return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
  }

  void record(const Action& action, TimePoint end) {
    for (const Action& half : halves_of(action)) {
      const bool forward = half.kind == ActionKind::kForward;
      if (!forward && !hands_back(half.kind)) continue;
      ends_[{forward, half.pipeline, half.stage, half.micro_batches->first}] = end;
    }
  }

  void wait(const Action& action, TimePoint since, TimePoint start, DeviceTime& time) const {
    if (action.kind == ActionKind::kUpdate) {
      time.update += start - since;
      return;
    }
    std::optional<TimePoint> upstream;
    std::optional<TimePoint> downstream;
    for (const Action& half : halves_of(action)) {
      const bool forward = half.kind == ActionKind::kForward;
      if (!forward && !hands_back(half.kind)) continue;
      const auto& stages = plan_.pipelines.at(half.pipeline.index()).stages;
      const int from = half.stage.value + (forward ? -1 : 1);
      if (from < 0 || from >= static_cast<int>(stages.size())) continue;
      const StageId producer{from};
      if (stages[producer.index()].devices == stages[half.stage.index()].devices) continue;
      (forward ? upstream : downstream) =
          ends_.at({forward, half.pipeline, producer, half.micro_batches->first});
    }
    ASSERT_TRUE(upstream || downstream) << to_text(action) << " waits for nothing";
    const bool forward = !downstream || (upstream && *upstream >= *downstream);
    const TimePoint ended = std::max(since, forward ? *upstream : *downstream);
    (forward ? time.wait_upstream : time.wait_downstream) += ended - since;
    time.exposed_communication += start - ended;
    EXPECT_LE(start - ended, hop_);
  }

  const Plan& plan_;
  Duration hop_;
  std::map<std::string, std::vector<Span>> spans_;  // by text, in order
  std::map<Key, TimePoint> ends_;
};

WhatIf random_question(std::mt19937_64& random, const ScheduleFacts& facts) {
  const int p = 2 * (static_cast<int>(random() % 3) + 1);
  WhatIf what_if;
  what_if.stages = p;
  what_if.micro_batches = 2 * p * (static_cast<int>(random() % 2) + 1);
  what_if.schedule = facts.kind;
  const bool both_ways = directions(facts.placement) > 1;
  const auto times = [&] {
    std::vector<Duration> drawn(both_ways ? 1 : static_cast<std::size_t>(p));
    for (Duration& time : drawn) time = Duration{random() % 200 + 20};
    return drawn;
  };
  what_if.forward = times();
  what_if.backward_input = times();
  what_if.backward_weight = times();
  what_if.hop = Duration{random() % 3 == 0 ? 0 : random() % 150};
  return what_if;
}

TEST(IdleTime, SplitsEverySchedulesTimeAsNamesAndTimesOfItsActionsTell) {
  DeviceTime seen;
  for (const ScheduleFacts& facts : all_schedules()) {
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      std::mt19937_64 random(seed);
      const WhatIf what_if = random_question(random, facts);
      SCOPED_TRACE(std::string(schedule_name(facts.kind)) + ", seed " + std::to_string(seed));
      const WhatIfInputs inputs = make_what_if(what_if);
      const Explained explained = explain(inputs.plan, inputs.profile, inputs.cluster);
      expect_whole(explained);
      const ByName by_name(explained, inputs.plan, what_if.hop);
      for (std::size_t device = 0; device < explained.devices.size(); ++device) {
        SCOPED_TRACE("device " + std::to_string(device));
        ASSERT_EQ(explained.devices[device],
                  by_name.split(explained.schedule.devices[device], explained.makespan));
      }
      const std::vector<DeviceTime> both = {seen, sum(explained.devices)};
      seen = sum(both);
    }
  }
  // Every column had some time, so no column could be wrong unnoticed.
  EXPECT_GT(seen.exposed_communication, Duration{0});
  EXPECT_GT(seen.wait_upstream, Duration{0});
  EXPECT_GT(seen.wait_downstream, Duration{0});
  EXPECT_GT(seen.update, Duration{0});
}

TEST(IdleTime, NothingIsExposedWithoutCommunication) {
  for (const ScheduleFacts& facts : all_schedules()) {
    SCOPED_TRACE(std::string(schedule_name(facts.kind)));
    std::mt19937_64 random(1);
    WhatIf what_if = random_question(random, facts);
    what_if.hop = Duration{0};
    EXPECT_EQ(sum(explain(what_if).devices).exposed_communication, Duration{0});
  }
}

// A chain in replicas on unequal devices and links, frozen or not, clipped or not.
struct IdlingPlan {
  ModelProfile profile;
  Cluster cluster;
  Plan plan;
};

IdlingPlan make_idling_plan(std::mt19937_64& random) {
  const auto draw = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  const int layers = draw(3, 8);
  const int stages = draw(1, 3);
  const int replicas = draw(1, 3);
  IdlingPlan made;
  made.profile = make_chain(layers, nanoseconds(draw(0, 90)), nanoseconds(draw(0, 90)),
                            nanoseconds(draw(1, 90)));
  for (Layer& layer : made.profile.layers) layer.update = nanoseconds(draw(0, 50));
  const BytesPerSecond bandwidth{draw(0, 2) == 0 ? 0 : draw(50, 2'000) * std::int64_t{1'000'000}};
  made.cluster = make_uniform_cluster(stages * replicas + draw(0, 1), kPlenty,
                                      {nanoseconds(draw(0, 60)), bandwidth});
  for (Device& device : made.cluster.devices) {
    device.time_ppm = draw(500'000, 2'000'000);
    device.action_overhead = nanoseconds(draw(0, 5));
    device.step_overhead = nanoseconds(draw(0, 1) * draw(1, 40));
  }
  Plan& plan = made.plan;
  plan.model_hash = model_hash(made.profile);
  plan.micro_batch_size = draw(1, 3);
  plan.batch_size = plan.micro_batch_size * replicas * draw(1, 6);
  plan.mask = FreezeMask::all_active(layers);
  if (draw(0, 2) == 0) plan.mask = FreezeMask::frozen_prefix(layers, BlockId{draw(0, 1)});
  plan.schedule = NamedSchedule{.kind = draw(0, 1) == 0 ? ScheduleKind::kGpipe
                                                        : ScheduleKind::kOneForwardOneBackward};
  const int share = plan.micro_batches() / replicas;
  for (int r = 0; r < replicas; ++r) {
    std::vector<LayerId> cuts;
    std::vector<DeviceId> devices = {DeviceId{r * stages}};
    for (int s = 1; s < stages; ++s) {
      cuts.emplace_back(s == 1 ? 1 : draw(2, layers - 1));
      devices.emplace_back(r * stages + s);
    }
    plan.pipelines.push_back(make_pipeline(
        layers, cuts, devices, {MicroBatchId{r * share}, MicroBatchId{(r + 1) * share - 1}}));
  }
  return made;
}

TEST(IdleTime, AddsUpToTheMakespanOfEveryDeviceOfRandomPlans) {
  DeviceTime seen;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const IdlingPlan made = make_idling_plan(random);
    const Explained explained = explain(made.plan, made.profile, made.cluster, random() % 2 == 0);
    expect_whole(explained);
    const std::vector<DeviceTime> both = {seen, sum(explained.devices)};
    seen = sum(both);
  }
  EXPECT_GT(seen.exposed_communication, Duration{0});
  EXPECT_GT(seen.wait_upstream, Duration{0});
  EXPECT_GT(seen.wait_downstream, Duration{0});
  EXPECT_GT(seen.update, Duration{0});
}

TEST(IdleTime, RefusesTimesInWhichADeviceIdlesWithoutAReason) {
  for (const bool has_input : {false, true}) {
    LoweredStep step;
    const WorkId work = step.graph.add_work(Fixed{nanoseconds(3)});
    for (int d = 0; d < 2; ++d) step.graph.add_lane(DeviceId{d}, Lane::kCompute);
    for (const LaneId lane : {LaneId{0}, LaneId{1}, LaneId{1}}) {
      const auto micro_batch = static_cast<int>(step.actions.size());
      step.graph.add_task(lane, work);
      step.actions.push_back(stage_action(0, ActionKind::kForward, micro_batch));
    }
    if (has_input) step.graph.add_dependency(2, 0);
    const ModelProfile without_layers;
    const Cluster cluster = make_uniform_cluster(2, kPlenty, {});
    Simulation simulation = simulate(step.graph, {without_layers, cluster});
    const std::vector<Duration> prices = {nanoseconds(3)};
    EXPECT_NO_THROW(split_makespan(step, simulation, prices, 2));
    simulation.start[2] += nanoseconds(1);
    simulation.end[2] += nanoseconds(1);
    EXPECT_THROW(split_makespan(step, simulation, prices, 2), std::logic_error);
  }
}

}  // namespace
}  // namespace frazil
