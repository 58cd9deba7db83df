#include "planner/search/group_bound.h"

#include <algorithm>

#include "planner/linear_bounds.h"
#include "planner/linear_orders.h"
#include "planner/schedule_menu.h"

namespace frazil {
namespace {

constexpr Duration kNone{0};

void raise(NamedBound& bound, Duration time, std::string_view name) {
  if (time > bound.time) bound = {time, name};
}

struct StageOfGroup {
  LayerSpan span;
  std::size_t device = 0;
  SpanTimes times;
  Duration backward{0};  // B, or I and W where they may run as one
  Duration reduction{0};
  Duration update{0};
  Duration after{0};  // both
  bool updates = false;
  Duration head{0};
  Duration tail{0};
  Duration input_tail{0};
};

struct DeviceLoad {
  Duration head = Duration::max();
  Duration work{0};
  Duration weight{0};
  Duration tail = Duration::max();
  Duration input_tail = Duration::max();
  // Of its stages with an update: reductions run one after the other, and so do updates.
  Duration reductions{0};
  Duration updates{0};
  Duration least_reduction = Duration::max();
  Duration least_update = Duration::max();

  Duration after() const {
    if (least_update == Duration::max()) return kNone;
    return std::max(reductions + least_update, least_reduction + updates);
  }
};

class GroupBound {
 public:
  GroupBound(const Shape& shape, const GroupClass& group, const ChainSums& sums,
             const Cluster& machine, const Owners& owners)
      : shape_(shape),
        family_(family_of(shape.variant.schedule)),
        sums_(sums),
        machine_(machine),
        owners_(owners),
        whole_(group.share - (group.has_short ? 1 : 0)),
        splits_(splits_backward(shape.variant.schedule)) {}

  NamedBound find(const std::vector<LayerSpan>& spans, const WorkBounds& reductions) {
    NamedBound bound{kNone, splits_ ? "general-floor" : "busiest-device"};
    if (whole_ <= 0) return bound;
    std::vector<DeviceLoad> loads(machine_.devices.size());
    const int ways = directions(family_.placement);
    // A short one is the last of the last direction.
    const int of_way = ways == 1 ? whole_ : whole_ / ways;
    for (int way = 0; way < ways; ++way) {
      place(spans, way, reductions);
      add_loads(loads, of_way);
    }
    for (const DeviceLoad& load : loads) {
      if (load.head == Duration::max()) continue;
      if (splits_) {
        raise(bound, load.head + load.work + load.after(), "general-floor");
        raise(bound, load.head + load.work - load.weight + load.input_tail, "gradient-chain");
      } else {
        raise(bound, load.head + load.work + std::max(load.after(), load.tail), "busiest-device");
      }
    }
    if (ways == 1 && shape_.variant.chunks == 1) raise_by_linear_bounds(bound);
    return bound;
  }

 private:
  bool recomputes(std::size_t stage, std::size_t stages) const {
    if (shape_.variant.schedule == ScheduleKind::kVaruna) return stage + 1 < stages;
    return shape_.variant.recompute;
  }

  Duration hop(std::size_t from, std::size_t to, Bytes size) const {
    if (from == to) return kNone;
    const Link link = machine_.link(DeviceId{from}, DeviceId{to});
    return size / link.bandwidth + link.latency;
  }

  void place(const std::vector<LayerSpan>& spans, int way, const WorkBounds& reductions) {
    const auto devices = static_cast<int>(machine_.devices.size());
    stages_.clear();
    for (std::size_t s = 0; s < spans.size(); ++s) {
      StageOfGroup stage;
      stage.span = spans[s];
      stage.device = static_cast<std::size_t>(
          device_of_stage(family_.placement, devices, way, static_cast<int>(s)));
      const Device& device = machine_.devices[stage.device];
      stage.times = sums_.times(stage.span, device, recomputes(s, spans.size()));
      const SpanTimes& times = stage.times;
      stage.backward =
          splits_ ? std::min(times.backward, times.input + times.weight) : times.backward;
      stage.updates = sums_.has_update(stage.span);
      stage.reduction = reductions.reduction(sums_.updated_parameters(stage.span), owners_.devices,
                                             owners_.nodes);
      stage.update = sums_.update(stage.span, device);
      stage.after = stage.reduction + stage.update;
      stage.head = device.step_overhead;
      if (s > 0) follow(stages_.back(), stage);
      stages_.push_back(stage);
    }
  }

  // What the stage before adds to a stage's head and tails.
  void follow(const StageOfGroup& before, StageOfGroup& stage) const {
    const int cut = stage.span.first;
    if (sums_.is_joined(cut)) {
      const Duration down = hop(before.device, stage.device, sums_.neighbour_down(cut));
      stage.head = std::max(stage.head, before.head + before.times.forward + down);
    }
    if (!sums_.carries(cut)) return;
    const Duration up = hop(stage.device, before.device, sums_.neighbour_up(cut));
    stage.tail = up + before.backward + std::max(before.tail, before.after);
    stage.input_tail = up + before.times.input + before.input_tail;
  }

  void add_loads(std::vector<DeviceLoad>& loads, int micro_batches) const {
    for (const StageOfGroup& stage : stages_) {
      DeviceLoad& load = loads[stage.device];
      const SpanTimes& times = stage.times;
      load.head = std::min(load.head, stage.head);
      load.work += (times.forward + times.recompute + stage.backward) * micro_batches;
      load.weight += (stage.backward - std::min(stage.backward, times.input)) * micro_batches;
      load.tail = std::min(load.tail, stage.tail);
      load.input_tail = std::min(load.input_tail, stage.input_tail);
      if (!stage.updates) continue;
      load.reductions += stage.reduction;
      load.updates += stage.update;
      load.least_reduction = std::min(load.least_reduction, stage.reduction);
      load.least_update = std::min(load.least_update, stage.update);
    }
  }

  void raise_by_linear_bounds(NamedBound& bound) const {
    const auto stages = static_cast<int>(stages_.size());
    const auto depths = held_by_stage(stages);
    if (depths.empty()) return;
    // Stages before the first one with a backward are part of the head.
    const auto begin = static_cast<std::size_t>(
        std::find_if(stages_.begin(), stages_.end(),
                     [&](const StageOfGroup& stage) { return sums_.has_backward(stage.span); }) -
        stages_.begin());
    if (begin == stages_.size()) return;
    LinearPipeline pipeline;
    pipeline.micro_batches = whole_;
    pipeline.splits_backward = splits_;
    pipeline.in_flight.assign(depths.begin() + static_cast<std::ptrdiff_t>(begin), depths.end());
    const ScheduleKind kind = shape_.variant.schedule;
    if (kind == ScheduleKind::kZb1p || kind == ScheduleKind::kZb2p) {
      pipeline.release = ActivationRelease::kHalfAtInput;
    }
    for (std::size_t s = begin; s < stages_.size(); ++s) {
      const StageOfGroup& stage = stages_[s];
      const SpanTimes& times = stage.times;
      const Duration weight =
          splits_ ? stage.backward - std::min(stage.backward, times.input) : kNone;
      pipeline.times.push_back({times.forward, stage.backward - weight, weight});
      if (s == begin) continue;
      const int cut = stage.span.first;
      const StageOfGroup& before = stages_[s - 1];
      if (!sums_.is_joined(cut) || !sums_.carries(cut)) return;
      pipeline.down.push_back(hop(before.device, stage.device, sums_.neighbour_down(cut)));
      pipeline.up.push_back(hop(stage.device, before.device, sums_.neighbour_up(cut)));
    }
    for (const LinearBound& linear : find_linear_bounds(pipeline)) {
      for (std::size_t s = begin; s < stages_.size(); ++s) {
        raise(bound, stages_[s].head + linear.span_of_stage[s - begin] + stages_[s].after,
              linear.name);
      }
    }
  }

  // K by stage; empty where the schedule is none that the linear bounds know.
  std::vector<int> held_by_stage(int stages) const {
    const auto& [arrangement, kind, chunks, in_flight, recompute] = shape_.variant;
    int depth = 0;
    if (kind == ScheduleKind::kGpipe || kind == ScheduleKind::kTwoBp) depth = whole_;
    const bool own = kind == ScheduleKind::kOneForwardOneBackward || kind == ScheduleKind::kZbH1 ||
                     kind == ScheduleKind::kZb1p;
    if (own) depth = in_flight.value_or(stages);
    if (kind == ScheduleKind::kEagerOneForwardOneBackward || kind == ScheduleKind::kZbH2) {
      depth = in_flight.value_or(2 * stages - 1);
    }
    if (kind == ScheduleKind::kZb2p) depth = in_flight.value_or(2 * stages);
    if (depth == 0) return {};
    const bool falls = kind == ScheduleKind::kOneForwardOneBackward ||
                       kind == ScheduleKind::kEagerOneForwardOneBackward;
    std::vector<int> held;
    for (int s = 0; s < stages; ++s) held.push_back(falls ? warm_up(depth, stages, s) : depth);
    return held;
  }

  const Shape& shape_;
  const ScheduleFamily& family_;
  const ChainSums& sums_;
  const Cluster& machine_;
  const Owners& owners_;
  int whole_;
  bool splits_;
  std::vector<StageOfGroup> stages_;
};

}  // namespace

NamedBound bound_group(const Shape& shape, const GroupClass& group,
                       const std::vector<LayerSpan>& spans, const ChainSums& sums,
                       const Cluster& machine, const WorkBounds& reductions, const Owners& owners) {
  return GroupBound(shape, group, sums, machine, owners).find(spans, reductions);
}

}  // namespace frazil
