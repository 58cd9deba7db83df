// Implements the part of planner/lowering/lowering_state.h on lanes, works that many tasks share,
// and waits.
#include "planner/lowering/lowering_state.h"

#include <map>
#include <utility>

#include "profiles/error.h"
#include "profiles/setting.h"

namespace frazil {

namespace {

void describe_stages(LoweringState& state) {
  StageTasks none;
  for (auto& by_size : none.work) by_size.fill(kNoWork);
  for (const PipelineTable& pipeline : state.table) {
    auto& tasks = state.tasks.emplace_back();
    for (const StageEntry& stage : pipeline.stages) {
      tasks.emplace_back(stage.stage->devices.size(), none);
    }
  }
}

// Returns by device whether some class of links has a bandwidth and reaches another device.
std::vector<bool> find_bandwidths(const Cluster& cluster) {
  const std::size_t devices = cluster.devices.size();
  if (cluster.link_classes.empty()) {
    return std::vector<bool>(devices, cluster.default_link.bandwidth.count > 0);
  }
  std::map<HostId, std::size_t> on_host;
  std::map<std::pair<HostId, ProcessId>, std::size_t> in_process;
  for (const Device& device : cluster.devices) {
    ++on_host[device.host];
    ++in_process[{device.host, device.process}];
  }
  const auto counts = [&](LinkClass link_class, std::size_t peers) {
    return peers > 0 && cluster.usual_link(link_class).bandwidth.count > 0;
  };
  std::vector<bool> has_bandwidth;
  for (const Device& device : cluster.devices) {
    const std::size_t near = in_process[{device.host, device.process}];
    const std::size_t here = on_host[device.host];
    has_bandwidth.push_back(counts(LinkClass::kProcess, near - 1) ||
                            counts(LinkClass::kHost, here - near) ||
                            counts(LinkClass::kNetwork, devices - here));
  }
  return has_bandwidth;
}

void describe_devices(LoweringState& state, const Cluster& cluster) {
  state.devices.resize(cluster.devices.size());
  std::vector<bool> has_bandwidth = find_bandwidths(cluster);
  for (const DirectedLink& link : cluster.links) {
    if (link.link.bandwidth.count > 0) has_bandwidth.at(link.from.index()) = true;
  }
  for (std::size_t d = 0; d < has_bandwidth.size(); ++d) {
    state.devices[d].sends_at_once = !has_bandwidth[d];
  }
}

}  // namespace

LoweringState begin_lowering(const Plan& plan, Setting setting, const Activity& activity,
                             const LoweringOptions& options) {
  const ModelProfile& profile = setting.profile();
  const auto micro_batches = static_cast<std::size_t>(plan.micro_batches());
  LoweringState state{.plan = plan,
                      .profile = profile,
                      .activity = activity,
                      .options = options,
                      .micro_batches = micro_batches,
                      .short_size = samples_in(plan, MicroBatchId{micro_batches - 1}),
                      .table = make_stage_table(plan, profile, activity),
                      .reductions = {},
                      .step = {},
                      .tasks = {},
                      .devices = {},
                      .rows = PartRows(plan.pipelines),
                      .weight_gradient = {},
                      .pair_works = {},
                      .no_work = kNoWork};
  describe_stages(state);
  describe_devices(state, setting.cluster());
  if (options.overlap) state.reductions = find_reduction_groups(plan, profile, activity);
  if (reduces_buckets(state)) {
    state.reductions = cut_into_buckets(state.reductions, profile, options.overlap->bucket);
  }
  return state;
}

LaneId LoweringState::lane(DeviceId device, Lane kind) {
  LaneId& lane = devices[device.index()].lanes[static_cast<std::size_t>(kind)];
  if (lane == kNoLane) lane = step.graph.add_lane(device, kind);
  return lane;
}

TaskId LoweringState::add_task(DeviceId device, Lane kind, WorkId work, const Action& action) {
  step.actions.push_back(action);
  return step.graph.add_task(lane(device, kind), work);
}

void LoweringState::wait(TaskId task, TaskId on, WorkId delay) {
  ENSURE(on != kNoTask, "an action waits for one that is in no list");
  const auto& lane_of = step.graph.lane_of();
  if (!options.any_order && delay == kNoWork && on < task && lane_of[on] == lane_of[task]) return;
  step.graph.add_dependency(task, on, delay);
}

Action make_barrier_action() {
  return make_stage_action(PipelineId{0}, StageId{0}, ActionKind::kBarrier);
}

Compute LoweringState::make_compute(DeviceId device, const Action& action, SizeIndex size) const {
  const Stage& stage = *stage_of(action).stage;
  return {device, samples_of(stage, slice_on(stage, device), samples(size)).count(),
          find_stage_parts(stage, action.kind, activity), /*goes_on=*/false};
}

WorkId LoweringState::compute_work(DeviceId device, const Action& action, SizeIndex size) {
  WorkId& work = tasks_of(action, device).work[static_cast<std::size_t>(action.kind)][size];
  if (work == kNoWork) work = step.graph.add_work(make_compute(device, action, size));
  return work;
}

WorkId LoweringState::pair_work(DeviceId device, const Action& forward, SizeIndex first,
                                const Action& backward, SizeIndex second) {
  const auto [known, added] =
      pair_works.try_emplace({device, forward.pipeline, forward.stage, first, backward.pipeline,
                              backward.stage, backward.kind, second},
                             kNoWork);
  if (added) {
    known->second = step.graph.add_work(
        ComputePair{make_compute(device, forward, first), make_compute(device, backward, second)});
  }
  return known->second;
}

WorkId LoweringState::transfer_work(const Transfer& transfer) {
  auto& transfers = devices[transfer.from.index()].transfers;
  for (const auto& [known, work] : transfers) {
    if (known == transfer) return work;
  }
  return transfers.emplace_back(transfer, step.graph.add_work(transfer)).second;
}

WorkId LoweringState::hop_work(DeviceId from, DeviceId to) {
  auto& hops = devices[from.index()].hops;
  for (const auto& [known, work] : hops) {
    if (known == to) return work;
  }
  return hops.emplace_back(to, step.graph.add_work(Hop{from, to})).second;
}

}  // namespace frazil
