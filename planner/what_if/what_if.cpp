#include "planner/what_if/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "planner/order_search/searched_plan.h"
#include "planner/plan/activity.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/any_plan_bound.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "profiles/setting.h"

namespace frazil {
namespace {

constexpr std::int64_t kMostActions = 50'000'000;
constexpr std::int64_t kMostTime = std::int64_t{1} << 62;

[[noreturn]] void refuse(const std::string& found, const std::string& expected) {
  throw InputError("command line", 0, found, expected);
}

// Returns one time per device. If a stage lies on two devices, its times cannot differ between
// them.
std::vector<Duration> spread(const std::vector<Duration>& times, const WhatIf& what_if,
                             const char* flag) {
  const int devices = what_if.stages;
  const ScheduleFacts& facts = facts_of(what_if.schedule);
  if (times.size() > 1 && directions(facts.placement) > 1) {
    throw InfeasibleError(
        fmt::format("{} has each stage on two devices, so {} takes one time, not {}",
                    schedule_name(facts.kind), flag, times.size()));
  }
  if (times.size() == 1) return std::vector<Duration>(static_cast<std::size_t>(devices), times[0]);
  if (times.size() != static_cast<std::size_t>(devices)) {
    refuse(fmt::format("{} times for {}", times.size(), flag),
           fmt::format("one, or one for each of {} devices", devices));
  }
  return times;
}

int chunks_of(const WhatIf& what_if) {
  return what_if.chunks.value_or(facts_of(what_if.schedule).chunks);
}

void check_chunks(const WhatIf& what_if) {
  const ScheduleFacts& facts = facts_of(what_if.schedule);
  const std::string found =
      fmt::format("--chunks {} with schedule {}", chunks_of(what_if), schedule_name(facts.kind));
  const int chunks = chunks_of(what_if);
  switch (facts.legal) {
    case ScheduleFacts::Chunks::kFixed:
      if (chunks != facts.chunks) {
        refuse(found, fmt::format("{}, which is all it has", facts.chunks));
      }
      return;
    case ScheduleFacts::Chunks::kEven:
      if (chunks < 2 || chunks % 2 != 0) refuse(found, "an even number, two for each wave");
      return;
    case ScheduleFacts::Chunks::kAny:
      if (chunks < 1) refuse(found, "at least 1");
      return;
  }
}

void check(const WhatIf& what_if) {
  const ScheduleFacts& facts = facts_of(what_if.schedule);
  if (what_if.stages < 1 || what_if.stages > kMostWhatIfStages) {
    refuse(fmt::format("{} stages", what_if.stages), fmt::format("1 to {}", kMostWhatIfStages));
  }
  if (what_if.micro_batches < 1 || what_if.micro_batches > kMostMicroBatches) {
    refuse(fmt::format("{} micro-batches", what_if.micro_batches),
           fmt::format("1 to {}", kMostMicroBatches));
  }
  check_chunks(what_if);
  if (chunks_of(what_if) > kMostWhatIfStages / what_if.stages) {
    refuse(fmt::format("{} chunks on each of {} devices", chunks_of(what_if), what_if.stages),
           fmt::format("at most {} in all", kMostWhatIfStages));
  }
  constexpr int kActionsOfAMicroBatch = 3;
  if (std::int64_t{what_if.stages} * what_if.micro_batches >
      kMostActions / kActionsOfAMicroBatch / chunks_of(what_if)) {
    refuse(fmt::format("{} stages of {} micro-batches", what_if.stages, what_if.micro_batches),
           fmt::format("at most {} actions", kMostActions));
  }
  if (what_if.in_flight && !facts.takes_in_flight) {
    refuse(fmt::format("--in-flight {} with schedule {}", *what_if.in_flight,
                       schedule_name(facts.kind)),
           "no --in-flight, because the schedule fixes it itself");
  }
  if (what_if.in_flight && *what_if.in_flight < 1) {
    refuse(fmt::format("--in-flight {}", *what_if.in_flight), "at least 1");
  }
}

Duration share_of(Duration time, int chunk, int chunks) {
  const auto up_to = [&](int c) { return time / chunks * c + time % chunks * c / chunks; };
  return up_to(chunk + 1) - up_to(chunk);
}

// Refuses times whose sum is too large: everything one after another is an upper bound on any time
// that will be added up.
void check_sum(const WhatIf& what_if, const ModelProfile& profile) {
  __extension__ using Wide = __int128;
  Wide once = 0;
  for (const Layer& layer : profile.layers) {
    const CostSample& cost = layer.costs.front();
    once += Wide{cost.forward.count()} + cost.backward_input.count() +
            cost.backward_weight.count() + 2 * Wide{what_if.hop.count()};
  }
  if (once == 0) refuse("times that are all zero", "some work to do");
  if (once * what_if.micro_batches > kMostTime) {
    refuse("times that add up past 2^62 ns", "a pipeline that ends within 146 years");
  }
}

Layer make_layer(const std::string& name, int block, const StageTimes& times) {
  Layer layer;
  layer.name = name;
  layer.block = BlockId{block};
  layer.parameters = Bytes{1};
  layer.costs.push_back({.micro_batch_size = 1,
                         .forward = times.forward,
                         .forward_frozen = times.forward,
                         .backward_input = times.backward_input,
                         .backward_weight = times.backward_weight,
                         .backward_weight_alone = times.backward_weight,
                         .stash = Bytes{1}});
  return layer;
}

// Layer 0 has no cost; layer s + 1 is stage s.
ModelProfile make_profile(const std::vector<StageTimes>& stages) {
  ModelProfile profile;
  profile.model = "what-if";
  profile.blocks.emplace_back("input");
  profile.layers.push_back(make_layer("input", 0, {}));
  profile.layers.back().costs.front().stash = Bytes{};
  profile.input_bytes_per_sample = Bytes{1};
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::string name = fmt::format("stage{}", s);
    profile.blocks.push_back(name);
    profile.layers.push_back(make_layer(name, static_cast<int>(s) + 1, stages[s]));
    profile.edges.push_back({LayerId{s}, LayerId{s + 1}, EdgeKind::kGradient, {Bytes{1}}});
  }
  profile.layers.back().has_loss = true;
  return profile;
}

std::vector<StageTimes> list_stage_times(const WhatIf& what_if, const ScheduleFacts& facts) {
  const auto forward = spread(what_if.forward, what_if, "--forward");
  const auto input = spread(what_if.backward_input, what_if, "--backward-input");
  const auto weight = spread(what_if.backward_weight, what_if, "--backward-weight");
  const int chunks = chunks_of(what_if);
  std::vector<StageTimes> times;
  for (int s = 0; s < what_if.stages * chunks; ++s) {
    const auto device =
        static_cast<std::size_t>(device_of_stage(facts.placement, what_if.stages, 0, s));
    const int chunk = s / what_if.stages;
    const auto share = [&](Duration time) { return share_of(time, chunk, chunks); };
    times.push_back({share(forward[device]), share(input[device]), share(weight[device])});
  }
  return times;
}

// Stage 0 holds layer 0, which has no cost, as well.
Pipeline make_direction(const WhatIf& what_if, const ScheduleFacts& facts, int direction) {
  const int stages = what_if.stages * chunks_of(what_if);
  Pipeline pipeline;
  for (int s = 0; s < stages; ++s) {
    Stage stage;
    stage.layers = {{LayerId{s == 0 ? 0 : s + 1}, LayerId{s + 1}}};
    stage.devices = {DeviceId{device_of_stage(facts.placement, what_if.stages, direction, s)}};
    if (facts.recomputes_itself && s + 1 < stages) {
      stage.memory = MemoryPolicy::kRecompute;
    }
    pipeline.stages.push_back(stage);
  }
  const int m = what_if.micro_batches;
  const int half = directions(facts.placement) == 1 ? m : m / 2;
  pipeline.micro_batches = {direction == 0 ? MicroBatches{MicroBatchId{0}, MicroBatchId{half - 1}}
                                           : MicroBatches{MicroBatchId{half}, MicroBatchId{m - 1}}};
  return pipeline;
}

// Chunks in flight along a device's list: +1 at F, -1 at W or B, F before B inside a pair.
struct HeldChunks {
  int now = 0;
  int most = 0;
};

void count_chunks(const Action& action, HeldChunks& held) {
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
    for (const Action& half : pair->halves) count_chunks(half, held);
  } else if (action.kind == ActionKind::kForward) {
    held.now += action.micro_batches->count();
    held.most = std::max(held.most, held.now);
  } else if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight) {
    held.now -= action.micro_batches->count();
  }
}

// First start and last end on a device.
struct DeviceTimes {
  TimePoint first = TimePoint::max();
  TimePoint last = TimePoint::min();
};

void sum_up(const SimulatedStep& simulated, WhatIfAnswer& answer, std::size_t devices) {
  const auto& [step, simulation] = simulated;
  std::vector<DeviceTimes> of_device(devices);
  std::vector<HeldChunks> held(devices);
  Duration busy{0};
  for (std::size_t task = 0; task < step.graph.size(); ++task) {
    const TaskLane& lane = step.graph.lanes()[step.graph.lane_of()[task]];
    DeviceTimes& times = of_device[lane.device.index()];
    times.first = std::min(times.first, simulation.start[task]);
    times.last = std::max(times.last, simulation.end[task]);
    if (lane.lane != Lane::kCompute) continue;
    busy += simulation.end[task] - simulation.start[task];
    count_chunks(step.actions[task], held[lane.device.index()]);
  }
  for (const HeldChunks& chunks : held) answer.peak_chunks.push_back(chunks.most);
  for (const DeviceTimes& times : of_device) {
    if (times.first < times.last) answer.span = std::max(answer.span, times.last - times.first);
  }
  const auto idle = [&](Duration length) {
    return 1 - static_cast<double>(busy.count()) /
                   (static_cast<double>(devices) * static_cast<double>(length.count()));
  };
  answer.makespan = simulation.makespan;
  answer.bubble = answer.makespan.count() > 0 ? idle(answer.makespan) : 0;
  answer.bubble_span = answer.span.count() > 0 ? idle(answer.span) : 0;
}

}  // namespace

WhatIfInputs make_what_if(const WhatIf& what_if) {
  check(what_if);
  const ScheduleFacts& facts = facts_of(what_if.schedule);
  WhatIfInputs inputs;
  inputs.profile = make_profile(list_stage_times(what_if, facts));
  check_sum(what_if, inputs.profile);
  constexpr Bytes kUnlimited{std::numeric_limits<std::int64_t>::max()};
  inputs.cluster = make_uniform_cluster(what_if.stages, kUnlimited, {what_if.hop, {}});
  Plan& plan = inputs.plan;
  plan.model_hash = model_hash(inputs.profile);
  plan.batch_size = what_if.micro_batches;
  plan.micro_batch_size = 1;
  plan.mask = FreezeMask::all_active(static_cast<int>(inputs.profile.blocks.size()));
  for (int direction = 0; direction < directions(facts.placement); ++direction) {
    plan.pipelines.push_back(make_direction(what_if, facts, direction));
  }
  plan.schedule = NamedSchedule{
      .kind = what_if.schedule, .in_flight = what_if.in_flight, .chunks = chunks_of(what_if)};
  plan.versions = facts.versions;
  plan.reduction = ReductionMode::kFast;
  return inputs;
}

std::string_view schedule_name(const WhatIf& what_if) {
  return what_if.search ? "search" : schedule_name(what_if.schedule);
}

std::optional<SearchedOrder> search_what_if(const WhatIf& what_if, WhatIfInputs& inputs) {
  if (!what_if.search) return std::nullopt;
  auto& [profile, cluster, plan] = inputs;
  SearchedPlan searched = search_order(std::move(plan), {profile, cluster}, *what_if.search);
  plan = std::move(searched.plan);
  return std::move(searched.found.front());
}

SimulatedStep simulate_what_if(const WhatIfInputs& inputs) {
  const auto& [profile, cluster, plan] = inputs;
  const Setting setting{profile, cluster};
  const Schedule compute = make_schedule(plan, static_cast<int>(cluster.devices.size()), setting);
  // Messages over pure latency have no task, so the list without them gives the same times with a
  // fraction of the memory.
  LoweredStep lowered = lower(plan, compute, setting, find_activity(profile, plan.mask));
  Simulation simulation = simulate(lowered.graph, setting, lowered.actions);
  return {std::move(lowered), std::move(simulation)};
}

WhatIfAnswer answer_what_if(const WhatIfInputs& inputs, const SimulatedStep& step,
                            const std::optional<SearchedOrder>& searched,
                            const std::optional<WhatIfMemory>& memory) {
  const auto& [profile, cluster, plan] = inputs;
  WhatIfAnswer answer;
  sum_up(step, answer, cluster.devices.size());
  if (memory) {
    const auto devices = static_cast<int>(cluster.devices.size());
    answer.peak_bytes = find_peak_bytes(*memory, plan, step, devices);
  }
  answer.bounds = find_bounds(plan, {profile, cluster});
  answer.any_plan = bound_any_plan(plan, {profile, cluster});
  if (!searched) return answer;
  const auto raise = [](LowerBound& known, const LowerBound& bound) {
    if (bound.time > known.time) known = bound;
  };
  raise(answer.bounds.makespan, searched->bounds.makespan);
  raise(answer.bounds.span, searched->bounds.span);
  answer.moves_tried = searched->moves_tried;
  return answer;
}

WhatIfAnswer answer_what_if(const WhatIfInputs& inputs, const std::optional<WhatIfMemory>& memory) {
  return answer_what_if(inputs, simulate_what_if(inputs), {}, memory);
}

}  // namespace frazil
