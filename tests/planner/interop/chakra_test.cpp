#include "planner/interop/chakra.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan_json.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "profiles/model_profile_json.h"
#include "tests/planner/interop/chakra_steps.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

TEST(Chakra, BothSidesOfAMessageSayTheSameAndItIsAsLargeAsItsBoundary) {
  WhatIfInputs inputs = make_chain_inputs(3, 4, Bytes{7}, {Duration{100}, {}});
  inputs.profile.edges[1].tensor_bytes_per_sample = {Bytes{0}};
  inputs.profile.edges.insert(inputs.profile.edges.begin() + 1,
                              {LayerId{0}, LayerId{2}, EdgeKind::kGradient, {Bytes{11}, Bytes{2}}});
  inputs.plan.model_hash = model_hash(inputs.profile);
  inputs.plan.micro_batch_size = 5;
  inputs.plan.batch_size = 18;  // the last micro-batch has 3 samples
  const SimulatedStep step = simulate_step(inputs.plan, {inputs.profile, inputs.cluster});
  std::map<std::string, std::string> sides;  // by tag
  std::map<std::string, std::int64_t> sizes;
  for (const auto& file : read_all(to_chakra(inputs, step))) {
    for (const ChakraFileNode& node : file) {
      if (node.numbers.count("comm_tag") == 0) continue;
      sides[std::to_string(node.number("comm_tag"))] += node.name + " ";
      sizes[node.name] = node.number("comm_size");
    }
  }
  EXPECT_EQ(sides.size(), 3 * 4 * 2U);
  for (std::size_t tag = 0; tag < sides.size(); ++tag) {
    EXPECT_EQ(sides.count(std::to_string(tag)), 1U) << tag;
  }
  EXPECT_EQ(sides.at("0"), "0SEND_F0 1RECV_F0 ");
  EXPECT_EQ(sides.at("1"), "0RECV_B0 1SEND_B0 ");
  EXPECT_EQ(sides.at("8"), "0SEND_F0>2 2RECV_F0>0 ");
  EXPECT_EQ(sides.at("15"), "0RECV_B3>2 2SEND_B3>0 ");
  EXPECT_EQ(sizes.at("0SEND_F0"), 7 * 5);
  EXPECT_EQ(sizes.at("1RECV_F3"), 7 * 3);
  EXPECT_EQ(sizes.at("2SEND_B2>0"), 13 * 5);
  EXPECT_EQ(sizes.at("0RECV_B3>2"), 13 * 3);
  EXPECT_EQ(sizes.at("1SEND_F0"), 1);  // nothing to carry, but ASTRA-sim wants a byte
}

TEST(Chakra, AFrozenStageGetsNoGradient) {
  WhatIfInputs inputs = make_chain_inputs(3, 2, Bytes{7}, {});
  inputs.plan.mask.set_active(BlockId{0}, false);
  const SimulatedStep step = simulate_step(inputs.plan, {inputs.profile, inputs.cluster});
  const ChakraFiles files = read_all(to_chakra(inputs, step));
  std::vector<std::string> names;
  for (const ChakraFileNode& node : files[0]) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0F0", "0SEND_F0", "0F1", "0SEND_F1"}));
}

// Makes two replicas of two stages: stage 0 lies on devices 0 and 2, stage 1 on 1 and 3.
WhatIfInputs make_replicas() {
  WhatIfInputs inputs = make_chain_inputs(2, 4, Bytes{7}, {});
  inputs.cluster = make_uniform_cluster(4, Bytes{1'000'000}, {Duration{1000}, {}});
  const auto replica = [](int r) {
    return make_pipeline(2, {LayerId{1}}, {DeviceId{2 * r}, DeviceId{2 * r + 1}},
                         {MicroBatchId{2 * r}, MicroBatchId{2 * r + 1}});
  };
  inputs.plan.pipelines = {replica(0), replica(1)};
  return inputs;
}

TEST(Chakra, ReductionsAreCollectivesOfNamedGroups) {
  const WhatIfInputs inputs = make_replicas();
  const SimulatedStep step = simulate_step(inputs.plan, {inputs.profile, inputs.cluster});
  const ChakraTraces traces = to_chakra(inputs, step);
  EXPECT_EQ(traces.groups, "{\n  \"1\": [0, 2],\n  \"2\": [1, 3]\n}\n");
  const ChakraFiles files = read_all(traces);
  const std::vector<std::string> groups = {"1", "2", "1", "2"};
  for (std::size_t d = 0; d < 4; ++d) {
    const ChakraFileNode& update = files[d].back();
    const ChakraFileNode& reduction = files[d][files[d].size() - 2];
    EXPECT_TRUE(update.name.ends_with("U"));
    EXPECT_EQ(update.data_deps.back(), reduction.id);
    ASSERT_EQ(reduction.type, ChakraFileNodeType::kCollective);
    EXPECT_EQ(reduction.group, groups[d]);
    EXPECT_EQ(reduction.number("comm_type"), 0);  // ALL_REDUCE
    EXPECT_EQ(reduction.number("comm_size"), 1000);
    EXPECT_EQ(reduction.number("duration_ns"), 2000);  // two steps of the ring's latency
  }
}

TEST(Chakra, ACollectiveOfAllDevicesNeedsNoGroup) {
  WhatIfInputs inputs = make_chain_inputs(1, 2, Bytes{7}, {});
  inputs.cluster = make_uniform_cluster(2, Bytes{1'000'000}, {});
  const auto replica = [](int r) {
    return make_pipeline(1, {}, {DeviceId{r}}, {MicroBatchId{r}, MicroBatchId{r}});
  };
  inputs.plan.pipelines = {replica(0), replica(1)};
  const SimulatedStep step = simulate_step(inputs.plan, {inputs.profile, inputs.cluster});
  const ChakraTraces traces = to_chakra(inputs, step);
  EXPECT_EQ(traces.groups, "");
  for (const auto& file : read_all(traces)) {
    EXPECT_EQ(file[2].type, ChakraFileNodeType::kCollective);
    EXPECT_EQ(file[2].group, "");
  }
}

// ASTRA-sim's feeder refuses a file without nodes.
TEST(Chakra, AnIdleDeviceHasAFileWithOneNodeWithoutTime) {
  WhatIfInputs inputs = make_chain_inputs(2, 2, Bytes{7}, {});
  inputs.cluster = make_uniform_cluster(3, Bytes{1'000'000}, {});
  const SimulatedStep step = simulate_step(inputs.plan, {inputs.profile, inputs.cluster});
  const ChakraFiles files = read_all(to_chakra(inputs, step));
  ASSERT_EQ(files.size(), 3U);
  ASSERT_EQ(files[2].size(), 1U);
  EXPECT_EQ(files[2][0].name, "idle");
  EXPECT_EQ(files[2][0].type, ChakraFileNodeType::kCompute);
  EXPECT_EQ(files[2][0].duration_micros, 0);
}

TEST(Chakra, StepOverheadIsWorkOfTheHostThatComputeWaitsFor) {
  WhatIfInputs inputs = make_chain_inputs(1, 1, Bytes{7}, {});
  inputs.cluster.devices[0].step_overhead = microseconds(40);
  const SimulatedStep step = simulate_step(inputs.plan, {inputs.profile, inputs.cluster});
  const ChakraFiles files = read_all(to_chakra(inputs, step));
  EXPECT_EQ(files[0][0].name, "step_overhead");
  EXPECT_EQ(files[0][0].number("is_cpu_op"), 1);
  EXPECT_EQ(files[0][0].duration_micros, 40);
  EXPECT_EQ(files[0][1].name, "0F0");
  EXPECT_EQ(files[0][1].data_deps, std::vector<std::uint64_t>{0});
}

// ASTRA-sim counts in whole microseconds, so rounding must not add up over a schedule.
TEST(Chakra, RoundedTimesStayWithTheRunningTotal) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    WhatIf what_if = make_question(ScheduleKind::kZbH1, 1 + below(random, 5), 20);
    what_if.forward = {Duration{1 + below(random, 3000)}};
    what_if.backward_input = {Duration{below(random, 3000)}};
    what_if.backward_weight = {Duration{below(random, 3000)}};
    const WhatIfInputs inputs = make_what_if(what_if);
    for (const auto& file : read_all(to_chakra(inputs, simulate_what_if(inputs)))) {
      std::int64_t exact = 0;
      std::int64_t rounded = 0;
      for (const ChakraFileNode& node : file) {
        if (node.type != ChakraFileNodeType::kCompute) continue;
        EXPECT_LT(std::abs(node.duration_micros * 1000 - node.number("duration_ns")), 1000);
        exact += node.number("duration_ns");
        rounded += node.duration_micros * 1000;
        EXPECT_LE(std::abs(rounded - exact), 500);
      }
    }
  }
}

// The SEND has the message's time on the link, the RECV its latency.
TEST(Chakra, NodesCarryPredictedTimes) {
  const WhatIfInputs inputs =
      make_chain_inputs(2, 1, Bytes{2'000'000}, {microseconds(30), BytesPerSecond{1'000'000'000}});
  const SimulatedStep step = simulate_step(inputs.plan, {inputs.profile, inputs.cluster});
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> times;
  for (const auto& file : read_all(to_chakra(inputs, step))) {
    for (const ChakraFileNode& node : file) {
      times[node.name] = {node.start_micros, node.number("duration_ns")};
    }
  }
  EXPECT_EQ(times.at("0F0"), (std::pair<std::int64_t, std::int64_t>{0, 1'000'000}));
  EXPECT_EQ(times.at("0SEND_F0"), (std::pair<std::int64_t, std::int64_t>{1000, 2'000'000}));
  EXPECT_EQ(times.at("1RECV_F0"), (std::pair<std::int64_t, std::int64_t>{3000, 30'000}));
  EXPECT_EQ(times.at("1F0"), (std::pair<std::int64_t, std::int64_t>{3030, 1'000'000}));
}

TEST(Chakra, EqualStepsGiveEqualBytes) {
  const WhatIfInputs inputs = make_what_if(make_question(ScheduleKind::kDualPipe, 4, 16));
  const ChakraTraces first = to_chakra(inputs, simulate_what_if(inputs));
  const ChakraTraces second = to_chakra(inputs, simulate_what_if(inputs));
  EXPECT_EQ(first.files, second.files);
}

TEST(Chakra, RefusesABarrier) {
  const WhatIfInputs inputs = make_chain_inputs(2, 2, Bytes{7}, {});
  const auto& [profile, cluster, plan] = inputs;
  const Activity activity = find_activity(profile, plan.mask);
  const Schedule completed =
      complete_schedule(make_schedule(plan, 2), plan, profile, activity, true);
  SimulatedStep step{lower(plan, completed, {profile, cluster}, activity), {}};
  step.simulation = simulate(step.lowered.graph, {profile, cluster}, step.lowered.actions);
  try {
    to_chakra(inputs, step);
    FAIL() << "the barrier was exported";
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "BARRIER waits for another device without a message, which a Chakra trace cannot "
                 "say");
  }
}

TEST(Chakra, RefusesGradientsThatAreShippedPieceByPiece) {
  const WhatIfInputs inputs = make_replicas();
  const SimulatedStep step =
      simulate_step(inputs.plan, {inputs.profile, inputs.cluster}, {.overlap = ReductionOverlap{}});
  EXPECT_THROW(to_chakra(inputs, step), InfeasibleError);
}

const std::string kQuestion = "--to chakra --stages 4 --micro-batches 8 --schedule 1f1b";

TEST(ChakraVerb, WritesWhatTheLibraryMakesUnderAstraSimsNames) {
  const ProgramFolder folder("chakra");
  std::filesystem::create_directory(folder.path("run"));
  const Outcome outcome = folder.run("export", kQuestion + " --hop 0.313ms --out run/step");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const WhatIfInputs inputs =
      make_what_if(make_question(ScheduleKind::kOneForwardOneBackward, 4, 8));
  const ChakraTraces traces = to_chakra(inputs, simulate_what_if(inputs));
  ASSERT_EQ(traces.files.size(), 4U);
  for (std::size_t d = 0; d < 4; ++d) {
    EXPECT_EQ(read_text_file(folder.path("run/step." + std::to_string(d) + ".et")),
              traces.files[d]);
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("run"))) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 4U);
}

TEST(ChakraVerb, WritesTheGroupsOfReplicas) {
  const ProgramFolder folder("chakra-groups");
  const WhatIfInputs inputs = make_replicas();
  write_plan(inputs.plan, folder.path("plan.json"));
  write_model_profile(inputs.profile, folder.path("model.json"));
  write_cluster(inputs.cluster, folder.path("cluster.json"));
  const Outcome outcome = folder.run(
      "export",
      "--to chakra --plan plan.json --profile model.json --cluster cluster.json --out step");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_text_file(folder.path("step.groups.json")),
            "{\n  \"1\": [0, 2],\n  \"2\": [1, 3]\n}\n");
  EXPECT_EQ(folder.count_files(), 3 + 4 + 1U);
}

TEST(ChakraVerb, RefusesInOneSentenceAndWritesNothing) {
  const ProgramFolder folder("chakra-refusals");
  std::filesystem::create_directory(folder.path("b.2.et"));
  for (const std::string& arguments :
       {kQuestion, kQuestion + " --comms --out a", kQuestion + " --out b"}) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = folder.run("export", arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err.find("frazil export: "), 0U) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n') + 1, outcome.err.size()) << outcome.err;
    EXPECT_EQ(folder.count_files(), 1U);  // the folder
  }
}

}  // namespace
}  // namespace frazil
