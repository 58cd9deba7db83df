// Replays Chakra files of whole steps without the exporter: the replay knows only the files and the
// links, and finds the times of ASTRA-sim and of our simulator.

#include "tests/planner/interop/chakra_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planner/actions/validate_plan.h"
#include "planner/plan/schedule_facts.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/planner/interop/chakra_steps.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

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

// Compares the makespan and the starts of each F, I, W, B, R and U.
void expect_replay(const WhatIfInputs& inputs, const SimulatedStep& step,
                   const ReplayLinks& links) {
  const ChakraTraces traces = to_chakra(inputs, step);
  const ChakraFiles files = read_all(traces);
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

std::size_t count_nodes(const ChakraFiles& files) {
  return std::accumulate(files.begin(), files.end(), std::size_t{0},
                         [](std::size_t sum, const auto& file) { return sum + file.size(); });
}

// A run of ASTRA-sim 2.0 on its own generator's traces of the same pipeline: F 1 ms, B 2 ms, 16 MiB
// over 50 GiB/s and 500 ns between neighbours. Its nodes are 2 p m COMP, and a SEND and a RECV for
// each of the 2 (p - 1) m messages.
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
    const ChakraFiles files = read_all(to_chakra(inputs, simulate_what_if(inputs)));
    EXPECT_EQ(count_nodes(files), run.nodes);
    EXPECT_EQ(replay_chakra(files, {.latency_ns = 313'000}).makespan_ns, run.makespan_ns);
  }
}

// Messages occupy their link as in those runs, one at a time until they arrive. The first layer's B
// is W alone in the profile, which takes here as long as I and W.
TEST(Chakra, MessagesOfSixteenMebibytesTakeAstraSimsTime) {
  const Link link{Duration{500}, BytesPerSecond{std::int64_t{50} << 30}};
  for (const AstraSimRun& run : kAstraSimRuns) {
    SCOPED_TRACE(run.stages);
    WhatIfInputs inputs = make_chain_inputs(run.stages, run.micro_batches, Bytes{16 << 20}, link);
    for (CostSample& cost : inputs.profile.layers.front().costs) {
      cost.backward_weight_alone = cost.backward_input + cost.backward_weight;
    }
    inputs.plan.model_hash = model_hash(inputs.profile);
    const SimulatedStep step = simulate_step(inputs.plan, {inputs.profile, inputs.cluster});
    EXPECT_EQ(step.simulation.makespan.count(), run.makespan_ns);
    const ReplayLinks links{
        .latency_ns = 500, .bytes_per_second = link.bandwidth.count, .holds_until_arrival = true};
    EXPECT_EQ(replay_chakra(read_all(to_chakra(inputs, step)), links).makespan_ns, run.makespan_ns);
  }
}

// Times are multiples of 24 us, so that each of up to four chunks has whole microseconds.
WhatIf random_question(std::mt19937_64& random, const ScheduleFacts& facts) {
  WhatIf what_if;
  what_if.schedule = facts.kind;
  const bool both_ways = directions(facts.placement) == 2;
  what_if.stages = both_ways ? 2 * (1 + below(random, 3)) : 1 + below(random, 6);
  const int p = what_if.stages;
  what_if.micro_batches = both_ways || facts.kind == ScheduleKind::kDualPipeV
                              ? p * (2 + below(random, 2))
                              : 1 + below(random, 3 * p + 2);
  if (facts.legal == ScheduleFacts::Chunks::kAny) what_if.chunks = 1 + below(random, 4);
  if (facts.legal == ScheduleFacts::Chunks::kEven) what_if.chunks = 2 + 2 * below(random, 2);
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
  for (const ScheduleFacts& facts : all_schedules()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(std::string(schedule_name(facts.kind)) + " seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const WhatIf what_if = random_question(random, facts);
      const WhatIfInputs inputs = make_what_if(what_if);
      const SimulatedStep step = simulate_what_if(inputs);
      expect_replay(inputs, step, {.latency_ns = what_if.hop.count()});
    }
  }
}

// Draws layers in a chain with some edges past a neighbour, replicas, frozen blocks, a short last
// micro-batch, links with or without a bandwidth, overheads, and reductions of either mode.
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
    validate(inputs.plan, {inputs.profile, inputs.cluster}, "plan");
    const SimulatedStep step = simulate_step(inputs.plan, {inputs.profile, inputs.cluster});
    const Link& link = inputs.cluster.default_link;
    expect_replay(inputs, step,
                  {.latency_ns = link.latency.count(), .bytes_per_second = link.bandwidth.count});
    with_groups += to_chakra(inputs, step).groups.empty() ? 0 : 1;
    with_sends += link.bandwidth.count > 0 && inputs.plan.pipelines[0].stages.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(with_groups, 100);
  EXPECT_GT(with_sends, 100);
}

// The last backwards run in pieces, with a reduction after each.
TEST(Chakra, ReductionsInBucketsReplayToTheSimulatorsTimes) {
  int in_pieces = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    WhatIfInputs inputs = random_plan(random);
    inputs.plan.reduction = ReductionMode::kFast;
    const auto& [profile, cluster, plan] = inputs;
    const SimulatedStep whole = simulate_step(plan, {profile, cluster});
    const SimulatedStep step =
        simulate_step(plan, {profile, cluster}, {.overlap = ReductionOverlap{Bytes{1}}});
    in_pieces += step.lowered.graph.size() > whole.lowered.graph.size() ? 1 : 0;
    const Link& link = cluster.default_link;
    expect_replay(inputs, step,
                  {.latency_ns = link.latency.count(), .bytes_per_second = link.bandwidth.count});
  }
  EXPECT_GT(in_pieces, 50);
}

}  // namespace
}  // namespace frazil
