#include "planner/interop/pytorch_csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/plan/plan_json.h"
#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/what_if.h"
#include "profiles/error.h"
#include "profiles/model_profile_json.h"
#include "tests/planner/interop/pytorch_schedules.h"
#include "tests/planner/support/parse_schedule.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using enum PytorchDialect;

std::string comms_of(const std::string& schedule) {
  return only_csv(parse_schedule(schedule, "test"), kComputeComms);
}

TEST(PytorchCsv, GpipeLooksSoInBothDialects) {
  const Schedule gpipe = completed_of(make_inputs(ScheduleKind::kGpipe, 2, 2));
  EXPECT_EQ(only_csv(gpipe, kComputeOnly),
            "0F0,0F1,0B0,0B1\n"
            "1F0,1F1,1B0,1B1\n");
  EXPECT_EQ(only_csv(gpipe, kComputeComms),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\n"
            "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1,1REDUCE_GRAD\n");
}

TEST(PytorchCsv, ReceivesOfOneForwardOneBackwardMoveBeforeTheSendsThatComeLater) {
  const Schedule schedule = completed_of(make_inputs(ScheduleKind::kOneForwardOneBackward, 2, 3));
  // Device 0 would send F of 1 while device 1 sends B of 0, each before it receives.
  EXPECT_FALSE(run_in_lockstep(schedule));
  EXPECT_EQ(only_csv(schedule, kComputeComms),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0SEND_F2,0RECV_B1,0B1,0RECV_B2,0B2,"
            "0REDUCE_GRAD\n"
            "1RECV_F0,1F0,1B0,1RECV_F1,1SEND_B0,1F1,1B1,1RECV_F2,1SEND_B1,1F2,1B2,1SEND_B2,"
            "1REDUCE_GRAD\n");
}

TEST(PytorchCsv, PairsAndTheFoldOfAVLookSo) {
  const Schedule dualpipev = completed_of(make_inputs(ScheduleKind::kDualPipeV, 2, 4));
  EXPECT_EQ(only_csv(dualpipev, kComputeOnly),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
            "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n"
            "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,"
            "(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n");
  const std::string comms = only_csv(dualpipev, kComputeComms);
  // Stages 1 and 2 lie on one rank.
  for (const char* never : {"1SEND_F", "2RECV_F", "2SEND_B", "1RECV_B"}) {
    EXPECT_EQ(comms.find(never), std::string::npos) << never;
  }
}

TEST(PytorchCsv, AReductionThatIsGivenStaysWhereItIs) {
  EXPECT_EQ(comms_of("d0: 0F0 1F0 1B0 0B0 0REDUCE_GRAD 1REDUCE_GRAD 0U 1U\n"),
            "0F0,1F0,1B0,0B0,0REDUCE_GRAD,1REDUCE_GRAD\n");
  EXPECT_EQ(comms_of("d0: 0F0 1F0 1B0 0B0 BARRIER 0U 1U\n"),
            "0F0,1F0,1B0,1REDUCE_GRAD,0B0,0REDUCE_GRAD\n");
}

TEST(PytorchCsv, AnOrderThatSuitsPytorchStaysAsItIs) {
  const std::string early =
      "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD\n"
      "1UNSHARD,1RECV_F0,1RECV_F1,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1,1REDUCE_GRAD,1RESHARD\n";
  EXPECT_EQ(only_csv(parse_pytorch_csv(early, "early.csv").schedule, kComputeComms), early);
}

// There are two replicas: device 2 feeds device 0, and device 3 feeds device 1.
TEST(PytorchCsv, EveryReplicaCountsItsRanksAndMicroBatchesFromZero) {
  const Schedule schedule = parse_schedule(
      "d0: 1F0 1B0 1F4 1B4 1REDUCE_GRAD 1U\n"
      "d1: 1:1F2 1:1B2 1:1F3 1:1B3 1:1REDUCE_GRAD 1:1U\n"
      "d2: 0F0 0F4 0B0 0B4 0REDUCE_GRAD 0U\n"
      "d3: 1:0F2 1:0F3 1:0B2 1:0B3 1:0REDUCE_GRAD 1:0U\n"
      "d4:\n",
      "test");
  const std::string both = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  EXPECT_EQ(to_pytorch_csv(schedule, kComputeOnly), (std::vector<std::string>{both, both}));
}

TEST(PytorchCsv, NothingToDoMakesNoFile) {
  EXPECT_TRUE(to_pytorch_csv(parse_schedule("d0:\nd1: 0U\n", "test"), kComputeOnly).empty());
}

TEST(PytorchCsv, AllFamiliesCanBeSaidButSix) {
  std::set<std::string_view> others;
  for (const ScheduleFacts& facts : all_schedules()) {
    if (!is_expressible(facts)) others.insert(facts.name);
  }
  EXPECT_EQ(others, (std::set<std::string_view>{"bitpipe", "chimera", "dualpipe", "pipedream",
                                                "pipedream-2bw", "varuna"}));
}

TEST(PytorchCsv, ComputeActionsOfEverySayableScheduleComeBack) {
  for_each_expressible([](const WhatIfInputs& inputs, const ScheduleFacts& facts) {
    const auto p = static_cast<int>(inputs.cluster.devices.size());
    const Schedule compute = compute_of(inputs);
    for (const PytorchDialect dialect : {kComputeOnly, kComputeComms}) {
      const std::string text = only_csv(completed_of(inputs), dialect);
      const PytorchSchedule imported = parse_pytorch_csv(text, "export.csv");
      EXPECT_EQ(imported.dialect, dialect);
      EXPECT_EQ(to_explicit_schedule(imported, p).devices, compute.devices);
      EXPECT_EQ(only_csv(imported.schedule, dialect), text);
      EXPECT_EQ(imported.shape.micro_batches, inputs.plan.batch_size);
      ASSERT_EQ(imported.shape.stages, static_cast<int>(inputs.plan.pipelines.at(0).stages.size()));
      for (int s = 0; s < imported.shape.stages; ++s) {
        EXPECT_EQ(imported.shape.rank_of_stage.at(static_cast<std::size_t>(s)).value,
                  device_of_stage(facts.placement, p, 0, s));
      }
    }
  });
}

TEST(PytorchCsv, ImportedSchedulesTakeTheirTimeWithOurCosts) {
  for_each_expressible([](const WhatIfInputs& inputs, const ScheduleFacts&) {
    const PytorchSchedule imported =
        parse_pytorch_csv(only_csv(completed_of(inputs), kComputeComms), "export.csv");
    WhatIfInputs given = inputs;
    given.plan.schedule =
        to_explicit_schedule(imported, static_cast<int>(inputs.cluster.devices.size()));
    EXPECT_EQ(answer_what_if(given).makespan, answer_what_if(inputs).makespan);
  });
}

std::string refusal(const Schedule& schedule, PytorchDialect dialect) {
  try {
    to_pytorch_csv(schedule, dialect);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PytorchCsv, WhatPytorchCannotSayIsNamed) {
  const std::string no_way = "PyTorch's pipelining has no way to say ";
  const std::string refused = "PyTorch's pipelining would refuse ";
  const std::vector<std::pair<std::string, std::string>> table = {
      {"d0: 0F0 0R0 0B0\n", no_way + "0R0 on device 0: it does not recompute by schedule"},
      {"d0: 0F0 0B0 0U 0F1 0B1\n",
       no_way + "0U on device 0: it has no updates inside a step and no weight versions"},
      {"d0: 0F0 BARRIER 0B0\n",
       no_way + "BARRIER on device 0: it has no updates inside a step and no weight versions"},
      {"d0: 0F0 0MOVE(stash0 d0>host) 0B0\n",
       no_way + "0MOVE(stash0 d0>host) on device 0: it moves no state"},
      {"d0: 0F0.1 0B0.1\n", no_way + "0F0.1 on device 0: it has no slices of a micro-batch"},
      {"d0: 0F0-1 0B0-1\n", no_way + "0F0-1 on device 0: its actions are of one micro-batch each"},
      {"d0: 0F0 0SEND_F0>2 0B0\n",
       no_way + "0SEND_F0>2 on device 0: its messages go to neighbouring stages only"},
      {"d0: 0F0 1:0F1 0B0 1:0B1\n",
       no_way + "1:0F1 on device 0: pipeline 0 works there too, and a rank has stages of one "
                "pipeline"},
      {"d0: (0F0;1:0B1)OVERLAP_F_B\n",
       no_way + "(0F0;1:0B1)OVERLAP_F_B on device 0: pipeline 0 works there too, and a rank has "
                "stages of one pipeline"},
      {"d0: 0F0 0B0\nd1: 0F1 0B1\n",
       no_way + "0F1 on device 1: its stage lies on device 0 too, and PyTorch's on one rank each"},
      {"d0: 0F0 0B0\nd1: 1:0REDUCE_GRAD 1:0U\n", no_way + "pipeline 1: it has no micro-batches"},
      {"d0: 1:0F0 1:0B0\n", no_way + "pipeline 0: it has nothing to do"},
      {"d0: 0F0 0F1 0B0 0B1\nd1: 1F1 1F0 1B0 1B1\n",
       no_way + "1F1 before 1F0: the last stage runs its forwards in order"},
      {"d0: 0F0\nd1: 1F0 1B0\n",
       refused + "rank 0 of pipeline 0: no 0B0, where it expects every micro-batch forward and "
                 "backward through every stage"},
      {"d0: 0F0 0W0\nd1: 1F0 1B0\n",
       refused + "rank 0 of pipeline 0: 0W0, where it expects 0I0 before it"},
  };
  for (const auto& [text, sentence] : table) {
    SCOPED_TRACE(text);
    EXPECT_EQ(refusal(parse_schedule(text, "test"), kComputeOnly), sentence);
  }
  EXPECT_EQ(refusal(parse_schedule("d0: 0F0 0B0\nd1: 1F0 1B0\n", "test"), kComputeComms),
            refused + "rank 0 of pipeline 0: 0B0, where it expects 0RECV_B0 before it");
}

TEST(PytorchCsv, SixFamiliesOfTheMenuAreRefusedWithTheirReason) {
  const std::vector<std::pair<ScheduleKind, std::string>> table = {
      {ScheduleKind::kDualPipe, "stages of one pipeline"},
      {ScheduleKind::kChimera, "stages of one pipeline"},
      {ScheduleKind::kBitPipe, "stages of one pipeline"},
      {ScheduleKind::kPipeDream, "no weight versions"},
      {ScheduleKind::kPipeDream2Bw, "no weight versions"},
      {ScheduleKind::kVaruna, "does not recompute"},
  };
  for (const auto& [kind, reason] : table) {
    SCOPED_TRACE(schedule_name(kind));
    const Schedule compute = compute_of(make_inputs(kind, 4, 8));
    EXPECT_NE(refusal(compute, kComputeOnly).find(reason), std::string::npos)
        << refusal(compute, kComputeOnly);
  }
}

TEST(PytorchCsv, AFrozenFirstStageIsRefused) {
  WhatIfInputs inputs = make_inputs(ScheduleKind::kGpipe, 2, 1);
  inputs.plan.mask = FreezeMask::parse("001", "test", 1);
  EXPECT_EQ(
      refusal(completed_of(inputs), kComputeOnly),
      "PyTorch's pipelining would refuse rank 0 of pipeline 0: no 0B0, where it expects every "
      "micro-batch forward and backward through every stage");
}

const std::string kInterleaved =
    "--to pytorch-csv --stages 2 --micro-batches 4 --schedule interleaved-1f1b";

TEST(ExportVerb, WritesWhatTheLibraryMakes) {
  const ProgramFolder folder("export");
  const Schedule schedule = completed_of(make_inputs(ScheduleKind::kInterleaved, 2, 4, 3));
  const Outcome outcome = folder.run("export", kInterleaved + " --chunks 3 --comms --out a.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_text_file(folder.path("a.csv")), only_csv(schedule, kComputeComms));
  ASSERT_EQ(folder.run("export", kInterleaved + " --chunks 3 --out a.csv").code, 0);
  EXPECT_EQ(read_text_file(folder.path("a.csv")), only_csv(schedule, kComputeOnly));
}

TEST(ExportVerb, WritesAFilePerReplicaOfAPlan) {
  const ProgramFolder folder("export-replicas");
  const ModelProfile profile = make_chain(4, milliseconds{1}, milliseconds{1}, milliseconds{1});
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = 5;
  plan.mask = FreezeMask::all_active(4);
  const auto pipeline = [](int first, int second, std::vector<MicroBatches> owned) {
    Pipeline made = make_pipeline(4, {LayerId{2}}, {DeviceId{first}, DeviceId{second}}, owned[0]);
    made.micro_batches = std::move(owned);
    return made;
  };
  const auto range = [](int first, int last) {
    return MicroBatches{MicroBatchId{first}, MicroBatchId{last}};
  };
  plan.pipelines = {pipeline(2, 0, {range(0, 1), range(4, 4)}), pipeline(1, 3, {range(2, 3)})};
  plan.schedule = NamedSchedule{};
  write_plan(plan, folder.path("plan.json"));
  write_model_profile(profile, folder.path("model.json"));
  write_cluster(make_uniform_cluster(4, Bytes{1'000'000}, {}), folder.path("cluster.json"));
  const Outcome outcome = folder.run("export",
                                     "--to pytorch-csv --plan plan.json --profile model.json "
                                     "--cluster cluster.json --out replica.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_text_file(folder.path("replica.0.csv")),
            "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  EXPECT_EQ(read_text_file(folder.path("replica.1.csv")), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(folder.count_files(), 5U);
}

TEST(ExportVerb, RefusesInOneSentenceAndWritesNothing) {
  const ProgramFolder folder("export-refusals");
  const std::vector<std::pair<std::string, int>> table = {
      {"", 2},
      {kInterleaved, 2},
      {"--to csv --stages 2 --micro-batches 4 --schedule gpipe --out a.csv", 2},
      {"--to pytorch-csv --out a.csv", 2},
      {"--to pytorch-csv --stages 2 --micro-batches 4 --schedule fastest --out a.csv", 2},
      {"--to pytorch-csv --stages 0 --micro-batches 4 --schedule gpipe --out a.csv", 2},
      {kInterleaved + " --plan plan.json --out a.csv", 2},
      {kInterleaved + " --cluster cluster.json --out a.csv", 2},
      {"--to pytorch-csv --stages 2 --micro-batches 4 --schedule dualpipe --out a.csv", 3},
  };
  for (const auto& [arguments, code] : table) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = folder.run("export", arguments);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.err.find("frazil export: "), 0U) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n') + 1, outcome.err.size()) << outcome.err;
    EXPECT_EQ(folder.count_files(), 0U);
  }
}

}  // namespace
}  // namespace frazil
