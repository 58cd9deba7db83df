// Tests what the built programs say of processes, as their users ask it.

#include <gtest/gtest.h>

#include <string>

#include "profiles/cluster_json.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "profiles/processes.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

class ProcessVerbs : public testing::Test {
 protected:
  void SetUp() override {
    write_model_profile(make_chain(4, microseconds(100), microseconds(100), microseconds(100)),
                        path("model.json"));
    const Outcome made = run("cluster", kCluster + " --out cluster.json");
    ASSERT_EQ(made.code, 0) << made.err;
    const Outcome planned =
        run("plan", kFiles + "--batch 4 --max-replicas 1 --schedules 1f1b --out plan.json");
    ASSERT_EQ(planned.code, 0) << planned.err;
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  Outcome run(const std::string& verb, const std::string& arguments) const {
    return folder_.run(verb, arguments);
  }
  std::int64_t makespan(const std::string& flags) const {
    const Outcome outcome = run("simulate", "--plan plan.json " + kFiles + flags + " --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const JsonCursor root = parse_json(outcome.out, "answer");
    return JsonFields(root).required("makespan_ns").integer(0, kLargestQuantity);
  }

  const std::string kCluster = "--devices 2 --memory 1GiB --within-bandwidth 1GB/s";
  const std::string kFiles = "--profile model.json --cluster cluster.json ";

 private:
  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(ProcessVerbs, ClusterDealsItsDevicesToProcesses) {
  const Outcome made =
      run("cluster",
          "--devices 8 --per-host 4 --memory 1GiB --within-bandwidth 1GB/s --between-bandwidth "
          "1GB/s --between-latency 0.02ms --procs 4 --process-bandwidth 20GB/s --commit-round "
          "0.03ms --out eight.json");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.out.find("3 on host1: device6, device7\n"), std::string::npos) << made.out;
  const Cluster cluster = read_cluster(path("eight.json"));
  EXPECT_EQ(count_processes(cluster), 4);
  EXPECT_EQ(cluster.commit_round, microseconds(30));
  const auto link = [&](int to) { return cluster.link(DeviceId{0}, DeviceId{to}); };
  EXPECT_EQ(link(1), (Link{Duration{0}, {20'000'000'000}}));
  EXPECT_EQ(link(2), (Link{Duration{0}, {1'000'000'000}}));
  EXPECT_EQ(link(4), (Link{microseconds(20), {1'000'000'000}}));
}

TEST_F(ProcessVerbs, SimulateAddsTheCommitRoundAndSaysThatItIsADefault) {
  const std::int64_t in_one = makespan("--clip");
  EXPECT_EQ(makespan("--procs 1 --clip"), in_one);
  EXPECT_EQ(makespan("--procs 2"), in_one + kDefaultCommitRound.count());
  const Outcome outcome = run("simulate", "--plan plan.json " + kFiles + "--procs 2");
  EXPECT_NE(outcome.out.find("commit round 50.000 us before the updates\nnote: the commit round is "
                             "a default: the cluster has no commit_round_ns\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("links        2 of 2 to another process of the host: "),
            std::string::npos)
      << outcome.out;
}

TEST_F(ProcessVerbs, PlanTellsTheCommitRoundOfEachPlanThatHasOne) {
  const Outcome outcome = run("plan", kFiles + "--batch 4 --procs 2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"commit_round_ns\":50000,\"commit_round_is_default\":true"),
            std::string::npos);
  EXPECT_NE(outcome.out.find("\"processes\":[{\"process\":0,\"host\":\"host0\",\"devices\":[0]},"),
            std::string::npos)
      << outcome.out;
  const Outcome versions =
      run("simulate", "--plan plan.json --schedule pipedream " + kFiles + "--procs 2");
  ASSERT_EQ(versions.code, 0) << versions.err;
  EXPECT_NE(versions.out.find("a process that is lost ends such a run\n"), std::string::npos)
      << versions.out;
}

TEST_F(ProcessVerbs, MessagesThatWereMeasuredPriceASimulatedStep) {
  const std::string file =
      std::string(FRAZIL_SOURCE_FOLDER) + "/profiles/measured/h200-2026-11-26/nccl.jsonl";
  const Outcome made = run("cluster", "--devices 2 --memory 1GiB --procs 2 --within-messages " +
                                          file + " --out nccl.json");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.out.find("4 times of messages in "), std::string::npos) << made.out;
  EXPECT_NE(made.out.find("an all-reduce of 16.00 MiB predicted / measured "), std::string::npos)
      << made.out;
  const Cluster cluster = read_cluster(path("nccl.json"));
  const Link& link = cluster.usual_link(LinkClass::kHost);
  EXPECT_GT(link.latency, microseconds(1'300));
  const Outcome slow =
      run("simulate", "--plan plan.json --profile model.json --cluster nccl.json --json");
  ASSERT_EQ(slow.code, 0) << slow.err;
  const JsonCursor root = parse_json(slow.out, "answer");
  // A micro-batch goes there and its gradient back.
  EXPECT_GE(JsonFields(root).required("makespan_ns").integer(0, kLargestQuantity),
            makespan("--procs 2") + Duration(2 * microseconds(1'300)).count());
}

TEST_F(ProcessVerbs, EveryAnswerAboutPlansTellsWhatItsCommitRoundRestsOn) {
  const std::string note =
      "note: the commit round is a default: the cluster has no commit_round_ns\n";
  for (const std::string asked : {"--held plan.json --steps 100", "--planner pipedream"}) {
    const std::string question = kFiles + "--batch 4 --procs 2 " + asked;
    const Outcome text = run("plan", question);
    EXPECT_NE(text.out.find(note), std::string::npos) << text.out << text.err;
    const Outcome json = run("plan", question + " --json");
    EXPECT_NE(json.out.find("\"commit_round_is_default\":true"), std::string::npos) << json.out;
    EXPECT_EQ(run("plan", kFiles + "--batch 4 " + asked).out.find("commit round"),
              std::string::npos);
  }
}

TEST_F(ProcessVerbs, ExportLeavesTheCommitRoundOutOfChakraTraces) {
  ASSERT_EQ(run("cluster", kCluster + " --procs 2 --out cluster.json").code, 0);
  const Outcome outcome = run("export", "--to chakra --plan plan.json " + kFiles + "--out trace");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(ProcessVerbs, WhatCannotBeDealtIsRefused) {
  const auto refusal = [&](const std::string& verb, const std::string& arguments) {
    const Outcome outcome = run(verb, arguments);
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_EQ(refusal("plan", kFiles + "--batch 4 --procs 3"),
            "frazil plan: --procs: found 3 processes for 2 devices of host \"host0\", expected at "
            "least one device for each process\n");
  EXPECT_EQ(refusal("cluster", kCluster + " --commit-round 1ms --out c.json"),
            "frazil cluster: command line: found --commit-round without --procs, expected both\n");
  EXPECT_NE(refusal("simulate",
                    "--stages 2 --procs 2 --micro-batches 2 --schedule gpipe "
                    "--forward 1ms --backward 1ms")
                .find("--procs with --stages"),
            std::string::npos);
}

}  // namespace
}  // namespace frazil
