#include "planner/answers/print_idle.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/what_if.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

struct Explained {
  LoweredStep step;
  Simulation simulation;
  Cluster cluster;
  std::vector<DeviceTime> devices;
  std::vector<PathStep> path;
  PathShares shares;
};

Explained explain(const LoweredStep& step, const ModelProfile& profile, const Cluster& cluster) {
  const auto devices = static_cast<int>(cluster.devices.size());
  const std::vector<Duration> prices = price_all(step.graph, {profile, cluster}).of_work;
  Explained explained;
  explained.step = step;
  explained.cluster = cluster;
  explained.simulation = simulate(step.graph, {profile, cluster}, step.actions);
  explained.devices = split_makespan(step, explained.simulation, prices, devices);
  explained.path = find_critical_path(step.graph, explained.simulation, prices);
  explained.shares = share_out(explained.path, step, explained.simulation, devices);
  return explained;
}

WhatIf make_question(ScheduleKind kind, int stages, int micro_batches) {
  WhatIf what_if;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.schedule = kind;
  what_if.forward = {milliseconds(2)};
  what_if.backward_input = {milliseconds(3)};
  what_if.backward_weight = {milliseconds(1)};
  what_if.hop = milliseconds(1);
  return what_if;
}

Explained explain(const WhatIf& what_if) {
  const auto [profile, cluster, plan] = make_what_if(what_if);
  const Setting setting{profile, cluster};
  const Schedule compute = make_schedule(plan, what_if.stages, setting);
  return explain(lower(plan, compute, setting, find_activity(profile, plan.mask)), profile,
                 cluster);
}

// d0 |0011     aaaa  bbbb|
// d1 |   00aaaa11bbbb    |   with F 2 ms, B 4 ms and a hop of 1 ms
TEST(PrintIdle, ATableHasARowPerDeviceAndOneForAll) {
  const Explained explained = explain(make_question(ScheduleKind::kOneForwardOneBackward, 2, 2));
  EXPECT_EQ(
      print_idle_time(explained.devices, explained.cluster),
      "ms              compute   exposed comm  wait downstream           fill          drain\n"
      "device0  12.000  60.0 %  2.000  10.0 %    6.000  30.0 %  0.000   0.0 %  0.000   0.0 %\n"
      "device1  12.000  60.0 %  0.000   0.0 %    0.000   0.0 %  3.000  15.0 %  5.000  25.0 %\n"
      "all      24.000  60.0 %  2.000   5.0 %    6.000  15.0 %  3.000   7.5 %  5.000  12.5 %\n");
}

TEST(PrintIdle, ATableOfAStepThatTakesNoTimeHasNoShares) {
  const std::vector<DeviceTime> devices(1);
  EXPECT_EQ(print_idle_time(devices, make_uniform_cluster(1, Bytes{1}, {})),
            "ms             compute\n"
            "device0  0.000   0.0 %\n"
            "all      0.000   0.0 %\n");
}

TEST(PrintIdle, ALineTellsWhatTheCriticalPathIsMadeOf) {
  const Explained explained = explain(make_question(ScheduleKind::kOneForwardOneBackward, 2, 2));
  EXPECT_EQ(print_critical_path(explained.shares, explained.cluster),
            "critical path 20.000 ms: F 6.000 ms, B 12.000 ms, hops 2.000 ms; "
            "on device0 6.000 ms, device1 12.000 ms\n");
}

TEST(PrintIdle, TheLineNamesEveryKindOfWork) {
  PathShares shares;
  for (const ActionKind kind :
       {ActionKind::kForward, ActionKind::kBackwardInput, ActionKind::kBackwardWeight,
        ActionKind::kBackward, ActionKind::kRecompute, ActionKind::kUpdate, ActionKind::kPair}) {
    shares.compute[static_cast<std::size_t>(kind)] = nanoseconds(static_cast<int>(kind) + 1);
  }
  shares.transfers = nanoseconds(20);
  shares.hops = nanoseconds(21);
  shares.collectives = nanoseconds(22);
  shares.overheads = nanoseconds(23);
  EXPECT_EQ(print_critical_path(shares, {}),
            "critical path 121 ns: F 1 ns, I 2 ns, W 3 ns, B 4 ns, R 5 ns, U 6 ns, pairs 14 ns, "
            "transfers 20 ns, hops 21 ns, collectives 22 ns, overheads 23 ns\n");
}

TEST(PrintIdle, TheLineNamesTheEightDevicesWithMostOfThePath) {
  PathShares shares;
  shares.compute[0] = nanoseconds(10 * 10 + 1);
  shares.of_device.assign(12, nanoseconds(10));
  shares.of_device[1] = nanoseconds(0);
  shares.of_device[11] = nanoseconds(1);
  shares.of_device[10] = nanoseconds(11);
  shares.of_device[9] = nanoseconds(9);
  // The first seven devices with 10 ns are named; the others are 8 with 10 ns, 9 with 9 ns and 11
  // with 1 ns.
  EXPECT_EQ(print_critical_path(shares, make_uniform_cluster(12, Bytes{1}, {})),
            "critical path 101 ns: F 101 ns; on device0 10 ns, device2 10 ns, device3 10 ns, "
            "device4 10 ns, device5 10 ns, device6 10 ns, device7 10 ns, device10 11 ns, "
            "3 others 20 ns\n");
}

TEST(PrintIdle, JsonHoldsWholeNanosecondsThatAddUp) {
  for (const ScheduleKind kind : {ScheduleKind::kZbH1, ScheduleKind::kDualPipe}) {
    SCOPED_TRACE(std::string(schedule_name(kind)));
    const Explained explained = explain(make_question(kind, 4, 8));
    const auto json =
        nlohmann::ordered_json::parse(idle_time_json(explained.devices, explained.cluster));
    ASSERT_EQ(json["devices"].size(), 4U);
    EXPECT_EQ(json["devices"][3]["name"], "device3");
    const std::vector<std::string> columns = {"compute_ns",       "exposed_communication_ns",
                                              "wait_upstream_ns", "wait_downstream_ns",
                                              "update_ns",        "fill_ns",
                                              "drain_ns"};
    std::int64_t all = 0;
    for (const auto& device : json["devices"]) {
      std::int64_t sum = 0;
      for (const std::string& column : columns) sum += device[column].get<std::int64_t>();
      EXPECT_EQ(sum, explained.simulation.makespan.count());
      EXPECT_EQ(device.size(), columns.size() + 1);
    }
    for (const std::string& column : columns) all += json["all"][column].get<std::int64_t>();
    EXPECT_EQ(all, 4 * explained.simulation.makespan.count());
  }
}

TEST(PrintIdle, JsonTellsEveryStepOfTheCriticalPath) {
  const Explained explained = explain(make_question(ScheduleKind::kDualPipe, 4, 8));
  const auto json = nlohmann::ordered_json::parse(
      critical_path_json(explained.path, explained.step, explained.simulation, explained.cluster));
  EXPECT_EQ(json["length_ns"], explained.simulation.makespan.count());
  EXPECT_EQ(json["hops_ns"], explained.shares.hops.count());
  EXPECT_EQ(json["compute"]["OVERLAP_F_B_ns"],
            explained.shares.compute[static_cast<std::size_t>(ActionKind::kPair)].count());
  ASSERT_EQ(json["steps"].size(), explained.path.size());
  std::int64_t now = 0;
  for (const auto& step : json["steps"]) {
    EXPECT_EQ(step["start_ns"].get<std::int64_t>(), now + step["delay_ns"].get<std::int64_t>());
    EXPECT_EQ(step["reason"] == "first", now == 0);
    EXPECT_EQ(step["lane"], "compute");
    now = step["end_ns"];
  }
  EXPECT_EQ(now, explained.simulation.makespan.count());
}

TEST(PrintIdle, JsonOfAStepNamesActionPlaceTimesAndReason) {
  const Explained explained = explain(make_question(ScheduleKind::kOneForwardOneBackward, 2, 2));
  const auto json = nlohmann::ordered_json::parse(
      critical_path_json(explained.path, explained.step, explained.simulation, explained.cluster));
  EXPECT_EQ(json["steps"][1].dump(),
            R"({"action":"1F0","device":"device1","lane":"compute","start_ns":3000000,)"
            R"("end_ns":5000000,"reason":"dependency","delay_ns":1000000})");
  EXPECT_EQ(json["steps"][2]["action"], "1B0");
  EXPECT_EQ(json["steps"][2]["reason"], "lane");
  EXPECT_EQ(json["devices"].dump(),
            R"([{"name":"device0","path_ns":6000000},{"name":"device1","path_ns":12000000}])");
}

}  // namespace
}  // namespace frazil
