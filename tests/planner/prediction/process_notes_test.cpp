#include "planner/prediction/process_notes.h"

#include <gtest/gtest.h>

#include "profiles/processes.h"
#include "tests/planner/support/shared_plans.h"

namespace frazil {
namespace {

// Makes two devices on a host and one on another, with links of all classes and a listed one.
Cluster make_two_hosts() {
  Cluster cluster = make_shared_cluster(4, Duration{2'000});
  cluster.hosts.push_back({"host1", Bytes{}});
  cluster.devices[3].host = HostId{1};
  cluster.devices[0].process = cluster.devices[1].process = ProcessId{0};
  cluster.devices[2].process = ProcessId{1};
  cluster.link_classes[LinkClass::kProcess] = Link{Duration{300}, {20'000'000'000}};
  cluster.link_classes[LinkClass::kNetwork] = Link{Duration{30'000}, {1'000'000'000}};
  cluster.links = {{DeviceId{0}, DeviceId{3}, {Duration{1}, {1}}}};
  return cluster;
}

TEST(ProcessNotes, TellWhichDevicesShareAProcessAndWhichLinksAreOfWhichClass) {
  EXPECT_EQ(list_processes(make_two_hosts()),
            "processes    0 on host0: device0, device1\n"
            "             1 on host0: device2\n"
            "             host1: device3\n"
            "links        2 of 12 in a process: 300 ns, 20 GB/s\n"
            "             4 of 12 to another process of the host: 2.000 us, unlimited\n"
            "             6 of 12 to another host: 30.000 us, 1 GB/s; 1 listed\n");
  EXPECT_EQ(processes_json(make_two_hosts()),
            R"({"processes":[{"process":0,"host":"host0","devices":[0,1]},)"
            R"({"process":1,"host":"host0","devices":[2]},{"host":"host1","devices":[3]}],)"
            R"("links":{"process":{"pairs":2,"listed":0,"latency_ns":300,)"
            R"("bandwidth_bytes_per_second":20000000000},)"
            R"("host":{"pairs":4,"listed":0,"latency_ns":2000,"bandwidth_bytes_per_second":0},)"
            R"("network":{"pairs":6,"listed":1,"latency_ns":30000,)"
            R"("bandwidth_bytes_per_second":1000000000}}})");
}

TEST(ProcessNotes, SayNothingOfOneProcess) {
  Cluster cluster = make_shared_cluster(4);
  const Plan plan = make_shared_plan({2, 2}, 1, 2, {});
  for (int named = 0; named < 2; ++named) {
    EXPECT_EQ(list_processes(cluster), "");
    EXPECT_EQ(processes_json(cluster), "{}");
    EXPECT_EQ(list_commit_rounds(std::vector{&plan}, cluster), "");
    EXPECT_EQ(commit_round_json(plan, cluster), "{}");
    deal_processes(cluster, 1, "--procs");
  }
}

TEST(ProcessNotes, ShortenManyProcessesAndDevices) {
  Cluster cluster = make_shared_cluster(40);
  deal_processes(cluster, 10, "--procs");
  const std::string ten = list_processes(cluster);
  EXPECT_NE(
      ten.find("6 on host0: device24, device25, device26, device27\n             and 3 more\n"),
      std::string::npos)
      << ten;
  deal_processes(cluster, 2, "--procs");
  const std::string two = list_processes(cluster);
  EXPECT_NE(two.find("0 on host0: device0 to device19, 20 devices\n"), std::string::npos) << two;
}

TEST(ProcessNotes, SayThatACommitRoundIsADefaultAndThatSomePlansHaveNone) {
  Cluster cluster = make_shared_cluster(2);
  deal_processes(cluster, 2, "--procs");
  const Plan plan = make_shared_plan({1, 1}, 1, 2, {});
  Plan versions = make_shared_plan({1, 1}, 1, 2, {.kind = ScheduleKind::kPipeDream});
  versions.versions = WeightVersions::kStash;
  EXPECT_EQ(list_commit_rounds(std::vector{&plan}, cluster),
            "commit round 50.000 us before the updates\n"
            "note: the commit round is a default: the cluster has no commit_round_ns\n");
  EXPECT_EQ(commit_round_json(plan, cluster),
            R"({"commit_round_ns":50000,"commit_round_is_default":true})");
  cluster.commit_round = Duration{7'000};
  EXPECT_EQ(list_commit_rounds(std::vector<const Plan*>{&plan, &versions}, cluster),
            "commit round 7.000 us before the updates of a plan over several processes\n"
            "note: some plans update among the backwards, without a commit round: a process that "
            "is lost ends such a run\n");
  EXPECT_EQ(list_commit_rounds(std::vector<const Plan*>{&versions}, cluster),
            "note: the plan updates among the backwards, without a commit round: a process that is "
            "lost ends such a run\n");
  EXPECT_EQ(commit_round_json(versions, cluster), R"({"lost_process_ends_run":true})");
}

}  // namespace
}  // namespace frazil
