#include "planner/bounds/group_loads.h"

#include <algorithm>

#include "planner/bounds/variant_memory.h"
#include "planner/plan/schedule_facts.h"

namespace frazil {
namespace {

// Sets the boundary to the stage before, and what that stage adds to this one's head and tails.
void follow(const StageLoad& before, StageLoad& stage, const ChainSums& sums,
            const Cluster& group_cluster) {
  const int cut = stage.span.first;
  const auto send = [&](std::size_t from, std::size_t to, Bytes size, Duration& sent) {
    if (from == to) return Duration{0};
    const Link link = group_cluster.link(DeviceId{from}, DeviceId{to});
    sent = size / link.bandwidth;
    return sent + link.latency;
  };
  stage.joined = sums.is_joined(cut);
  stage.carries = sums.carries(cut);
  if (stage.joined) {
    stage.down = send(before.device, stage.device, sums.neighbour_down(cut), stage.down_sent);
    stage.head = std::max(stage.head, before.head + before.times.forward + stage.down);
  }
  if (!stage.carries) return;
  stage.up = send(stage.device, before.device, sums.neighbour_up(cut), stage.up_sent);
  stage.tail = stage.up + before.backward + std::max(before.tail, before.after());
  stage.input_tail = stage.up + before.times.input + before.input_tail;
}

void add(const StageLoad& stage, int micro_batches, DeviceLoad& load) {
  const SpanTimes& times = stage.times;
  load.head = std::min(load.head, stage.head);
  load.work += (times.forward + times.recompute + stage.backward) * micro_batches;
  load.weight += stage.weight() * micro_batches;
  load.tail = std::min(load.tail, stage.tail);
  load.input_tail = std::min(load.input_tail, stage.input_tail);
  if (!stage.updates) return;
  load.reductions += stage.reduction;
  load.updates += stage.update;
  load.least_reduction = std::min(load.least_reduction, stage.reduction);
  load.least_update = std::min(load.least_update, stage.update);
}

}  // namespace

GroupLoads add_up_loads(const Shape& shape, const GroupClass& group,
                        const std::vector<LayerSpan>& spans, const ChainSums& sums,
                        const Cluster& group_cluster, const WorkBounds& reductions,
                        const Owners& owners) {
  const Placement placement = placement_of(shape.variant);
  const auto count = static_cast<int>(group_cluster.devices.size());
  const auto stages = static_cast<int>(spans.size());
  GroupLoads loads;
  loads.micro_batches = group.share - (group.has_short ? 1 : 0);
  loads.splits = facts_of(shape.variant.schedule).splits_backward;
  loads.ways = directions(placement);
  loads.devices.resize(group_cluster.devices.size());
  if (loads.micro_batches <= 0) return loads;
  // The short micro-batch is the last one of the last direction.
  const int of_way = loads.micro_batches / loads.ways;
  for (int way = 0; way < loads.ways; ++way) {
    loads.stages.clear();
    loads.stages.reserve(spans.size());
    for (int s = 0; s < stages; ++s) {
      StageLoad stage;
      stage.span = spans[static_cast<std::size_t>(s)];
      stage.device = static_cast<std::size_t>(device_of_stage(placement, count, way, s));
      const Device& device = group_cluster.devices[stage.device];
      stage.times = sums.times(stage.span, device, recomputes(shape.variant, s, stages));
      stage.backward = loads.splits
                           ? std::min(stage.times.backward, stage.times.input + stage.times.weight)
                           : stage.times.backward;
      stage.has_backward = sums.has_backward(stage.span);
      stage.has_input = sums.has_input(stage.span);
      stage.updates = sums.has_update(stage.span);
      stage.reduction =
          reductions.reduction(sums.updated_parameters(stage.span), owners.devices, owners.nodes);
      stage.update = sums.update(stage.span, device);
      stage.head = device.step_overhead;
      if (s > 0) follow(loads.stages.back(), stage, sums, group_cluster);
      loads.stages.push_back(stage);
      add(stage, of_way, loads.devices[stage.device]);
    }
  }
  return loads;
}

}  // namespace frazil
