// Chakra files of whole steps, read and replayed without the exporter: the replay knows the files
// and the links alone, and finds the simulator's times.

#include "planner/chakra.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <random>

#include "planner/plan_json.h"
#include "planner/schedule_menu.h"
#include "planner/schedules.h"
#include "planner/what_if.h"
#include "profiles/cluster_json.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/planner/chakra_replay.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Files = std::vector<std::vector<ChakraFileNode>>;

int below(std::mt19937_64& random, int limit) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(limit));
}

Files read_all(const ChakraTraces& traces) {
  Files files;
  for (const std::string& file : traces.files) files.push_back(read_chakra_file(file));
  return files;
}

std::map<std::string, std::vector<int>> read_groups(const std::string& text) {
  std::map<std::string, std::vector<int>> groups;
  if (text.empty()) return groups;
  JsonFields fields(parse_json(text, "groups"));
  for (const std::string& name : fields.keys()) {
    EXPECT_GT(std::stoi(name), 0);  // ASTRA-sim takes numbers above 0
    for (const JsonCursor& rank : fields.required(name).items()) {
      groups[name].push_back(static_cast<int>(rank.integer(0, 1000)));
    }
  }
  return groups;
}

ChakraTraces to_chakra(const WhatIfInputs& inputs, const SimulatedStep& step) {
  return to_chakra(step, inputs.plan, inputs.profile, inputs.cluster);
}

// The makespan, and when each F, I, W, B, R and U begins.
void expect_replay(const WhatIfInputs& inputs, const SimulatedStep& step,
                   const ReplayLinks& links) {
  const ChakraTraces traces = to_chakra(inputs, step);
  const Files files = read_all(traces);
  const Replay replay = replay_chakra(files, links, read_groups(traces.groups));
  EXPECT_EQ(replay.makespan_ns, step.simulation.makespan.count());
  const TaskGraph& graph = step.lowered.graph;
  auto starts = replay.start_ns;
  for (auto& of_device : starts) {
    std::erase_if(of_device, [](const auto& named) {
      return named.first == "step_overhead" || named.first == "idle";
    });
  }
  decltype(starts) simulated(starts.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskLane& lane = graph.lanes()[graph.lane_of()[task]];
    if (lane.lane != Lane::kCompute) continue;
    simulated[lane.device.index()][to_text(step.lowered.actions[task])].push_back(
        step.simulation.start[task].time_since_epoch().count());
  }
  EXPECT_EQ(starts, simulated);
}

WhatIf make_question(ScheduleKind kind, int stages, int micro_batches) {
  WhatIf what_if;
  what_if.schedule = kind;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.forward = {milliseconds(1)};
  what_if.backward_input = {milliseconds(1)};
  what_if.backward_weight = {milliseconds(1)};
  what_if.hop = microseconds(313);
  return what_if;
}

std::size_t count_nodes(const Files& files) {
  return std::accumulate(files.begin(), files.end(), std::size_t{0},
                         [](std::size_t sum, const auto& file) { return sum + file.size(); });
}

// ---- against other simulators

// ASTRA-sim 2.0 on its own generator's traces of the same pipeline: F 1 ms, B 2 ms, 16 MiB over
// 50 GiB/s and 500 ns between neighbours. Nodes: 2 p m COMP, a SEND and a RECV for each of the
// 2 (p - 1) m messages.
struct AstraSimRun {
  int stages;
  int micro_batches;
  std::size_t nodes;
  std::int64_t makespan_ns;
};
constexpr AstraSimRun kAstraSimRuns[] = {
    {4, 8, 160, 38'008'000}, {8, 64, 2'816, 251'812'000}, {16, 256, 23'552, 972'004'000}};

TEST(Chakra, OneForwardOneBackwardTakesAstraSimsTimeAndNodes) {
  for (const AstraSimRun& run : kAstraSimRuns) {
    SCOPED_TRACE(run.stages);
    const WhatIfInputs inputs = make_what_if(
        make_question(ScheduleKind::kOneForwardOneBackward, run.stages, run.micro_batches));
    const Files files = read_all(to_chakra(inputs, simulate_what_if(inputs)));
    EXPECT_EQ(count_nodes(files), run.nodes);
    EXPECT_EQ(replay_chakra(files, {.latency_ns = 313'000}).makespan_ns, run.makespan_ns);
  }
}

// A chain with a layer per device, without updates.
WhatIfInputs make_chain_inputs(int stages, int micro_batches, Bytes boundary, const Link& link) {
  WhatIfInputs inputs;
  inputs.profile = make_chain(stages, milliseconds(1), milliseconds(1), milliseconds(1));
  for (Edge& edge : inputs.profile.edges) edge.tensor_bytes_per_sample = {boundary};
  inputs.cluster = make_uniform_cluster(stages, Bytes{1'000'000'000}, link);
  Plan& plan = inputs.plan;
  plan.model_hash = model_hash(inputs.profile);
  plan.batch_size = micro_batches;
  plan.mask = FreezeMask::all_active(stages);
  std::vector<LayerId> cuts;
  std::vector<DeviceId> devices = {DeviceId{0}};
  for (int s = 1; s < stages; ++s) {
    cuts.emplace_back(s);
    devices.emplace_back(s);
  }
  plan.pipelines = {
      make_pipeline(stages, cuts, devices, {MicroBatchId{0}, MicroBatchId{micro_batches - 1}})};
  plan.schedule = NamedSchedule{};
  return inputs;
}

// The messages on their link, as in those runs, and one at a time until they arrive, as there. The
// first layer's B is W alone in the profile: as long as both here.
TEST(Chakra, MessagesOfSixteenMebibytesTakeAstraSimsTime) {
  const Link link{Duration{500}, BytesPerSecond{std::int64_t{50} << 30}};
  for (const AstraSimRun& run : kAstraSimRuns) {
    SCOPED_TRACE(run.stages);
    WhatIfInputs inputs = make_chain_inputs(run.stages, run.micro_batches, Bytes{16 << 20}, link);
    for (CostSample& cost : inputs.profile.layers.front().costs) {
      cost.backward_weight_alone = cost.backward_input + cost.backward_weight;
    }
    inputs.plan.model_hash = model_hash(inputs.profile);
    const SimulatedStep step = simulate_step(inputs.plan, inputs.profile, inputs.cluster);
    EXPECT_EQ(step.simulation.makespan.count(), run.makespan_ns);
    const ReplayLinks links{
        .latency_ns = 500, .bytes_per_second = link.bandwidth.count, .holds_until_arrival = true};
    EXPECT_EQ(replay_chakra(read_all(to_chakra(inputs, step)), links).makespan_ns, run.makespan_ns);
  }
}

// ---- against our simulator

// Times are multiples of 24 us, so that each of up to four chunks has whole microseconds.
WhatIf random_question(std::mt19937_64& random, const ScheduleFamily& family) {
  WhatIf what_if;
  what_if.schedule = family.kind;
  const bool both_ways = directions(family.placement) == 2;
  what_if.stages = both_ways ? 2 * (1 + below(random, 3)) : 1 + below(random, 6);
  const int p = what_if.stages;
  what_if.micro_batches = both_ways || family.kind == ScheduleKind::kDualPipeV
                              ? p * (2 + below(random, 2))
                              : 1 + below(random, 3 * p + 2);
  if (family.legal == ScheduleFamily::Chunks::kAny) what_if.chunks = 1 + below(random, 4);
  if (family.legal == ScheduleFamily::Chunks::kEven) what_if.chunks = 2 + 2 * below(random, 2);
  const int times = both_ways ? 1 : p;
  for (int d = 0; d < times; ++d) {
    what_if.forward.push_back(microseconds(24) * (1 + below(random, 50)));
    what_if.backward_input.push_back(microseconds(24) * below(random, 50));
    what_if.backward_weight.push_back(microseconds(24) * below(random, 50));
  }
  what_if.hop = Duration{below(random, 2) * below(random, 1'000'000)};
  return what_if;
}

TEST(Chakra, EveryScheduleReplaysToTheSimulatorsTimes) {
  for (const ScheduleFamily& family : schedule_families()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(std::string(schedule_name(family.kind)) + " seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const WhatIf what_if = random_question(random, family);
      const WhatIfInputs inputs = make_what_if(what_if);
      const SimulatedStep step = simulate_what_if(inputs);
      expect_replay(inputs, step, {.latency_ns = what_if.hop.count()});
    }
  }
}

// Layers in a chain with some edges past a neighbour, replicas, frozen blocks, a short last
// micro-batch, links with or without a bandwidth, overheads, reductions of both modes.
WhatIfInputs random_plan(std::mt19937_64& random) {
  const int stages = 1 + below(random, 4);
  const int layers = stages + below(random, 4);
  const int replicas = 1 + below(random, 3);
  const auto time = [&] { return microseconds(1 + below(random, 500)); };
  WhatIfInputs inputs;
  inputs.profile = make_chain(layers, time(), time(), time());
  for (Layer& layer : inputs.profile.layers) layer.update = time();
  for (int l = 2; l < layers; ++l) {
    if (below(random, 3) != 0) continue;
    const Edge edge{LayerId{l - 2}, LayerId{l}, EdgeKind::kGradient, {Bytes{below(random, 5000)}}};
    inputs.profile.edges.push_back(edge);
  }
  std::sort(inputs.profile.edges.begin(), inputs.profile.edges.end(),
            [](const Edge& a, const Edge& b) {
              return std::pair(a.from, a.to) < std::pair(b.from, b.to);
            });
  inputs.cluster = make_uniform_cluster(
      stages * replicas, Bytes{1'000'000'000},
      {Duration{below(random, 50'000)}, BytesPerSecond{below(random, 2) * 100'000'000LL}});
  for (Device& device : inputs.cluster.devices) {
    device.step_overhead = below(random, 2) * time();
    device.action_overhead = below(random, 2) * microseconds(3);
  }
  Plan& plan = inputs.plan;
  plan.model_hash = model_hash(inputs.profile);
  plan.micro_batch_size = 1 + below(random, 4);
  const int micro_batches = replicas * (1 + below(random, 6));
  plan.batch_size = micro_batches * plan.micro_batch_size - below(random, plan.micro_batch_size);
  plan.mask = FreezeMask::all_active(layers);
  const int frozen = below(random, 2) * below(random, layers);
  for (int block = 0; block < frozen; ++block) plan.mask.set_active(BlockId{block}, false);
  plan.reduction = below(random, 2) == 0 ? ReductionMode::kFast : ReductionMode::kExact;
  std::vector<LayerId> cuts;
  for (int s = 1; s < stages; ++s) cuts.emplace_back(s + (layers - stages) * s / stages);
  const int share = micro_batches / replicas;
  for (int r = 0; r < replicas; ++r) {
    std::vector<DeviceId> devices;
    for (int s = 0; s < stages; ++s) devices.emplace_back(r * stages + s);
    plan.pipelines.push_back(make_pipeline(
        layers, cuts, devices, {MicroBatchId{r * share}, MicroBatchId{(r + 1) * share - 1}}));
  }
  const std::array<ScheduleKind, 4> kinds = {
      ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZbH1,
      ScheduleKind::kEagerOneForwardOneBackward};
  plan.schedule = NamedSchedule{.kind = kinds.at(static_cast<std::size_t>(below(random, 4)))};
  return inputs;
}

TEST(Chakra, RandomPlansReplayToTheSimulatorsTimes) {
  int with_groups = 0;
  int with_sends = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const WhatIfInputs inputs = random_plan(random);
    validate(inputs.plan, inputs.profile, inputs.cluster, "plan");
    const SimulatedStep step = simulate_step(inputs.plan, inputs.profile, inputs.cluster);
    const Link& link = inputs.cluster.default_link;
    expect_replay(inputs, step,
                  {.latency_ns = link.latency.count(), .bytes_per_second = link.bandwidth.count});
    with_groups += to_chakra(inputs, step).groups.empty() ? 0 : 1;
    with_sends += link.bandwidth.count > 0 && inputs.plan.pipelines[0].stages.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(with_groups, 100);
  EXPECT_GT(with_sends, 100);
}

// The last backwards in pieces, a reduction after each.
TEST(Chakra, ReductionsInBucketsReplayToTheSimulatorsTimes) {
  int in_pieces = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    WhatIfInputs inputs = random_plan(random);
    inputs.plan.reduction = ReductionMode::kFast;
    const auto& [profile, cluster, plan] = inputs;
    const SimulatedStep whole = simulate_step(plan, profile, cluster);
    const SimulatedStep step =
        simulate_step(plan, profile, cluster, {.overlap = ReductionOverlap{Bytes{1}}});
    in_pieces += step.lowered.graph.size() > whole.lowered.graph.size() ? 1 : 0;
    const Link& link = cluster.default_link;
    expect_replay(inputs, step,
                  {.latency_ns = link.latency.count(), .bytes_per_second = link.bandwidth.count});
  }
  EXPECT_GT(in_pieces, 50);
}

// ---- what the files say

TEST(Chakra, BothSidesOfAMessageSayTheSameAndItIsAsLargeAsItsBoundary) {
  WhatIfInputs inputs = make_chain_inputs(3, 4, Bytes{7}, {Duration{100}, {}});
  inputs.profile.edges[1].tensor_bytes_per_sample = {Bytes{0}};
  inputs.profile.edges.insert(inputs.profile.edges.begin() + 1,
                              {LayerId{0}, LayerId{2}, EdgeKind::kGradient, {Bytes{11}, Bytes{2}}});
  inputs.plan.model_hash = model_hash(inputs.profile);
  inputs.plan.micro_batch_size = 5;
  inputs.plan.batch_size = 18;  // the last micro-batch has 3 samples
  const SimulatedStep step = simulate_step(inputs.plan, inputs.profile, inputs.cluster);
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
  const SimulatedStep step = simulate_step(inputs.plan, inputs.profile, inputs.cluster);
  const Files files = read_all(to_chakra(inputs, step));
  std::vector<std::string> names;
  for (const ChakraFileNode& node : files[0]) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0F0", "0SEND_F0", "0F1", "0SEND_F1"}));
}

// Two replicas of two stages: stage 0 on devices 0 and 2, stage 1 on 1 and 3.
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
  const SimulatedStep step = simulate_step(inputs.plan, inputs.profile, inputs.cluster);
  const ChakraTraces traces = to_chakra(inputs, step);
  EXPECT_EQ(traces.groups, "{\n  \"1\": [0, 2],\n  \"2\": [1, 3]\n}\n");
  const Files files = read_all(traces);
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
  const SimulatedStep step = simulate_step(inputs.plan, inputs.profile, inputs.cluster);
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
  const SimulatedStep step = simulate_step(inputs.plan, inputs.profile, inputs.cluster);
  const Files files = read_all(to_chakra(inputs, step));
  ASSERT_EQ(files.size(), 3U);
  ASSERT_EQ(files[2].size(), 1U);
  EXPECT_EQ(files[2][0].name, "idle");
  EXPECT_EQ(files[2][0].type, ChakraFileNodeType::kCompute);
  EXPECT_EQ(files[2][0].duration_micros, 0);
}

TEST(Chakra, StepOverheadIsWorkOfTheHostThatComputeWaitsFor) {
  WhatIfInputs inputs = make_chain_inputs(1, 1, Bytes{7}, {});
  inputs.cluster.devices[0].step_overhead = microseconds(40);
  const SimulatedStep step = simulate_step(inputs.plan, inputs.profile, inputs.cluster);
  const Files files = read_all(to_chakra(inputs, step));
  EXPECT_EQ(files[0][0].name, "step_overhead");
  EXPECT_EQ(files[0][0].number("is_cpu_op"), 1);
  EXPECT_EQ(files[0][0].duration_micros, 40);
  EXPECT_EQ(files[0][1].name, "0F0");
  EXPECT_EQ(files[0][1].data_deps, std::vector<std::uint64_t>{0});
}

// ASTRA-sim counts in whole microseconds; what a schedule adds up must not drift.
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

// The message's part on the link is the SEND's, its latency the RECV's.
TEST(Chakra, NodesCarryPredictedTimes) {
  const WhatIfInputs inputs =
      make_chain_inputs(2, 1, Bytes{2'000'000}, {microseconds(30), BytesPerSecond{1'000'000'000}});
  const SimulatedStep step = simulate_step(inputs.plan, inputs.profile, inputs.cluster);
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
  SimulatedStep step{lower(plan, completed, profile, cluster, activity), {}};
  step.simulation = simulate(step.lowered.graph, profile, cluster, step.lowered.actions);
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
      simulate_step(inputs.plan, inputs.profile, inputs.cluster, {.overlap = ReductionOverlap{}});
  EXPECT_THROW(to_chakra(inputs, step), InfeasibleError);
}

// ---- the verb

const std::string kQuestion = "--to chakra --stages 4 --micro-batches 8 --schedule 1f1b";

TEST(ChakraVerb, WritesWhatTheLibraryMakesUnderAstraSimsNames) {
  const ProgramFolder folder("chakra");
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
