#include "planner/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "planner/activity.h"
#include "planner/schedules.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr int kMostStages = 4096;
constexpr int kMostMicroBatches = 1'000'000;
constexpr std::int64_t kMostActions = 50'000'000;
constexpr std::int64_t kMostTime = std::int64_t{1} << 62;

[[noreturn]] void refuse(const std::string& found, const std::string& expected) {
  throw InputError("command line", 0, found, expected);
}

// One time per device.
std::vector<Duration> spread(const std::vector<Duration>& times, int devices, const char* flag) {
  if (times.size() == 1) return std::vector<Duration>(static_cast<std::size_t>(devices), times[0]);
  if (times.size() != static_cast<std::size_t>(devices)) {
    refuse(fmt::format("{} times for {}", times.size(), flag),
           fmt::format("one, or one for each of {} devices", devices));
  }
  return times;
}

void check(const WhatIf& what_if) {
  const NamedSchedule& schedule = what_if.schedule;
  const std::string_view name = schedule_name(schedule.kind);
  if (what_if.stages < 1 || what_if.stages > kMostStages) {
    refuse(fmt::format("{} stages", what_if.stages), fmt::format("1 to {}", kMostStages));
  }
  if (what_if.micro_batches < 1 || what_if.micro_batches > kMostMicroBatches) {
    refuse(fmt::format("{} micro-batches", what_if.micro_batches),
           fmt::format("1 to {}", kMostMicroBatches));
  }
  if (std::int64_t{what_if.stages} * what_if.micro_batches > kMostActions / 2) {
    refuse(fmt::format("{} stages of {} micro-batches", what_if.stages, what_if.micro_batches),
           fmt::format("at most {} actions", kMostActions));
  }
  if (schedule.chunks != 1) {
    refuse(fmt::format("--chunks {} with schedule {}", schedule.chunks, name),
           "1, because each of its devices holds one chunk");
  }
  if (schedule.in_flight && schedule.kind == ScheduleKind::kGpipe) {
    refuse(fmt::format("--in-flight {} with schedule {}", *schedule.in_flight, name),
           "no --in-flight, because it holds all micro-batches in flight");
  }
  if (schedule.in_flight && *schedule.in_flight < 1) {
    refuse(fmt::format("--in-flight {}", *schedule.in_flight), "at least 1");
  }
}

// Everything one after another is an upper bound on any time that will be added up.
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

Layer make_stage_layer(int stage, int stages, Duration forward, Duration input, Duration weight) {
  Layer layer;
  layer.name = fmt::format("stage{}", stage);
  layer.block = BlockId{stage};
  layer.has_loss = stage + 1 == stages;
  layer.parameters = Bytes{1};
  layer.costs.push_back({.micro_batch_size = 1,
                         .forward = forward,
                         .backward_input = input,
                         .backward_weight = weight,
                         .backward_weight_alone = input + weight,
                         .stash = Bytes{1}});
  return layer;
}

// What a device does, from its own list: the sweep has no need of a time line.
struct DeviceTimes {
  TimePoint first = TimePoint::max();
  TimePoint last = TimePoint::min();
};

void sum_up(const LoweredStep& step, const Simulation& simulation, WhatIfAnswer& answer,
            std::size_t devices) {
  std::vector<DeviceTimes> of_device(devices);
  Duration busy{0};
  for (std::size_t task = 0; task < step.graph.size(); ++task) {
    const TaskLane& lane = step.graph.lanes()[step.graph.lane_of()[task]];
    DeviceTimes& times = of_device[lane.device.index()];
    times.first = std::min(times.first, simulation.start[task]);
    times.last = std::max(times.last, simulation.end[task]);
    if (lane.lane == Lane::kCompute) busy += simulation.end[task] - simulation.start[task];
  }
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

void count_chunks(const Action& action, int& held, int& peak) {
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
    for (const Action& half : pair->halves) count_chunks(half, held, peak);
  } else if (action.kind == ActionKind::kForward) {
    held += action.micro_batches->count();
    peak = std::max(peak, held);
  } else if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight) {
    held -= action.micro_batches->count();
  }
}

}  // namespace

WhatIfInputs make_what_if(const WhatIf& what_if) {
  check(what_if);
  const int stages = what_if.stages;
  const auto forward = spread(what_if.forward, stages, "--forward");
  const auto input = spread(what_if.backward_input, stages, "--backward-input");
  const auto weight = spread(what_if.backward_weight, stages, "--backward-weight");

  WhatIfInputs inputs;
  ModelProfile& profile = inputs.profile;
  profile.model = "what-if";
  std::vector<LayerId> cuts;
  std::vector<DeviceId> devices;
  for (int s = 0; s < stages; ++s) {
    const auto i = static_cast<std::size_t>(s);
    profile.blocks.push_back(fmt::format("stage{}", s));
    profile.layers.push_back(make_stage_layer(s, stages, forward[i], input[i], weight[i]));
    devices.emplace_back(s);
    if (s == 0) continue;
    profile.edges.push_back({LayerId{s - 1}, LayerId{s}, EdgeKind::kGradient, {Bytes{1}}});
    cuts.emplace_back(s);
  }
  check_sum(what_if, profile);

  constexpr Bytes kUnlimited{std::numeric_limits<std::int64_t>::max()};
  inputs.cluster = make_uniform_cluster(stages, kUnlimited, {what_if.hop, {}});
  Plan& plan = inputs.plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = what_if.micro_batches;
  plan.micro_batch_size = 1;
  plan.mask = FreezeMask::all_active(stages);
  plan.pipelines.push_back(make_pipeline(
      stages, cuts, devices, {MicroBatchId{0}, MicroBatchId{what_if.micro_batches - 1}}));
  plan.schedule = what_if.schedule;
  plan.reduction = ReductionMode::kFast;  // one pipeline: nothing is reduced
  return inputs;
}

std::vector<int> peak_chunks(const Schedule& compute) {
  std::vector<int> peaks;
  for (const std::vector<Action>& list : compute.devices) {
    int held = 0;
    int peak = 0;
    for (const Action& action : list) count_chunks(action, held, peak);
    peaks.push_back(peak);
  }
  return peaks;
}

WhatIfAnswer answer_what_if(const WhatIfInputs& inputs) {
  const auto& [profile, cluster, plan] = inputs;
  const Activity activity = find_activity(profile, plan.mask);
  const Schedule compute = make_schedule(plan, static_cast<int>(cluster.devices.size()));
  // Messages over pure latency have no task and updates no time, so the list without them gives the
  // same times with a fraction of the memory.
  const LoweredStep step = lower(plan, compute, profile, cluster, activity);
  WhatIfAnswer answer;
  sum_up(step, simulate(step.graph, profile, cluster, step.actions), answer,
         cluster.devices.size());
  answer.peak_chunks = peak_chunks(compute);
  answer.bounds = find_bounds(plan, profile, cluster);
  return answer;
}

}  // namespace frazil
