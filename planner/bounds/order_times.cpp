#include "planner/bounds/order_times.h"

#include <algorithm>

#include "planner/bounds/variant_memory.h"
#include "planner/orders/make_orders.h"
#include "planner/plan/schedule_facts.h"
#include "planner/schedules/stage_times.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr Duration kNotYet{-1};

// One stage of one direction. The short micro-batch is the last of the last direction.
struct TimedStage {
  std::size_t device = 0;
  SpanTimes times;
  bool has_input = false;
  bool has_weight = false;
  bool joined = false;   // waits for the F of the stage before
  bool carries = false;  // sends that stage a gradient
  // Messages over the boundary to the stage before: time on the sender's lane, then the latency.
  Duration down{0};
  Duration down_hop{0};
  Duration up{0};
  Duration up_hop{0};
  Bytes stash;
};

class ListRunner {
 public:
  ListRunner(const Shape& shape, const GroupClass& group, const ChainSums& sums,
             const Cluster& group_cluster)
      : placement_(facts_of(shape.variant.schedule).placement),
        devices_(group_cluster.devices.size()),
        ways_(static_cast<std::size_t>(directions(placement_))),
        of_way_(static_cast<std::size_t>(group.share) / ways_) {
    if (group.has_short) short_ = of_way_ - 1;
    for (std::size_t way = 0; way < ways_; ++way)
      add_stages(shape, group, sums, group_cluster, way);
    const std::size_t works = stages_.size() * of_way_;
    forward_.assign(works, kNotYet);
    gradient_.assign(works, kNotYet);
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      devices_[d].free = devices_[d].sent = group_cluster.devices[d].step_overhead;
    }
  }

  OrderTimes run(const DeviceOrders& orders, Duration most) {
    OrderTimes found;
    if (orders.size() != devices_.size()) return found;
    if (most < kNever) leave_idle(most);
    for (bool moved = true; moved && !too_long_;) {
      moved = false;
      found.known = true;
      for (std::size_t d = 0; d < orders.size(); ++d) {
        moved = run_device(d, orders[d]) || moved;
        found.known = found.known && devices_[d].next == orders[d].size();
      }
      if (found.known) break;
    }
    found.known = found.known || too_long_;
    for (const DeviceState& device : devices_) {
      found.last_work.push_back(device.worked ? device.free + std::max(kNoTime, device.left)
                                              : kNoTime);
      found.held.push_back(device.state + device.most_stash);
    }
    return found;
  }

 private:
  struct DeviceState {
    std::size_t next = 0;  // position in its list
    Duration free{0};
    Duration sent{0};  // when its messages so far have left
    bool worked = false;
    Duration left{0};            // F and backwards still to run, at least
    Duration may_idle = kNever;  // idle time left before `most` is exceeded
    Bytes state;
    Bytes stash;
    Bytes most_stash;
  };

  // Sets how long each device may idle, beside its work, and still be done within `most`.
  void leave_idle(Duration most) {
    const auto whole = static_cast<std::int64_t>(of_way_) - (short_ < of_way_ ? 1 : 0);
    for (const TimedStage& stage : stages_) {
      const SpanTimes& times = stage.times;
      const Duration backward = std::min(times.backward, times.input + times.weight);
      devices_[stage.device].left += (times.forward + backward) * whole;
    }
    for (DeviceState& device : devices_) device.may_idle = most - device.free - device.left;
  }

  void add_stages(const Shape& shape, const GroupClass& group, const ChainSums& sums,
                  const Cluster& group_cluster, std::size_t way) {
    const auto count = static_cast<int>(group.cuts.size()) + 1;
    const auto p = static_cast<int>(group_cluster.devices.size());
    int first = 0;
    for (int s = 0; s < count; ++s) {
      const auto at = static_cast<std::size_t>(s);
      const int end = s + 1 < count ? group.cuts[at].value : sums.layers();
      const LayerSpan span{first, end};
      const auto here =
          static_cast<std::size_t>(device_of_stage(placement_, p, static_cast<int>(way), s));
      const bool again = recomputes(shape.variant, s, count);
      TimedStage& stage = stages_.emplace_back();
      stage.device = here;
      stage.times = sums.times(span, group_cluster.devices[here], again);
      stage.has_input = sums.has_input(span);
      stage.has_weight = sums.has_update(span);
      if (s > 0) join(stage, sums, first, group_cluster, static_cast<int>(way), s);
      if (!again && sums.has_backward(span)) stage.stash = sums.stash(span);
      if (way == 0) {
        devices_[here].state +=
            sums.parameters(span) + sums.optimizer(span) + sums.updated_parameters(span);
      } else {
        stage.stash = Bytes{};
      }
      first = end;
    }
    stages_of_way_ = static_cast<std::size_t>(count);
    recompute_ = shape.variant.recompute && !facts_of(shape.variant.schedule).recomputes_itself;
  }

  void join(TimedStage& stage, const ChainSums& sums, int cut, const Cluster& group_cluster,
            int way, int s) const {
    const auto p = static_cast<int>(group_cluster.devices.size());
    const DeviceId before{device_of_stage(placement_, p, way, s - 1)};
    const DeviceId here{device_of_stage(placement_, p, way, s)};
    stage.joined = sums.is_joined(cut);
    stage.carries = sums.carries(cut);
    if (before == here) return;
    const Link there = group_cluster.link(before, here);
    const Link back = group_cluster.link(here, before);
    stage.down = sums.neighbour_down(cut) / there.bandwidth;
    stage.down_hop = there.latency;
    stage.up = sums.neighbour_up(cut) / back.bandwidth;
    stage.up_hop = back.latency;
  }

  bool is_short(const OrderedWork& work) const {
    return static_cast<std::size_t>(work.micro_batch) == short_ &&
           static_cast<std::size_t>(work.direction) + 1 == ways_;
  }
  std::size_t stage_at(const OrderedWork& work) const {
    return static_cast<std::size_t>(work.direction) * stages_of_way_ +
           static_cast<std::size_t>(work.stage);
  }
  std::size_t place(std::size_t stage, const OrderedWork& work) const {
    return stage * of_way_ + static_cast<std::size_t>(work.micro_batch);
  }
  bool is_last(const OrderedWork& work) const {
    return static_cast<std::size_t>(work.stage) + 1 == stages_of_way_;
  }

  bool is_needed(const OrderedWork& work) const {
    const TimedStage& stage = stages_[stage_at(work)];
    if (work.kind == ActionKind::kForward) return true;
    if (work.kind == ActionKind::kBackwardInput) return stage.has_input;
    if (work.kind == ActionKind::kBackwardWeight) return stage.has_weight;
    return stage.has_input || stage.has_weight;
  }

  Duration length_of(const OrderedWork& work) const {
    if (is_short(work)) return kNoTime;
    const SpanTimes& times = stages_[stage_at(work)].times;
    switch (work.kind) {
      case ActionKind::kForward:
        return times.forward;
      case ActionKind::kBackwardInput:
        return times.input;
      case ActionKind::kBackwardWeight:
        return times.weight;
      case ActionKind::kBackward:
        return times.backward;
      case ActionKind::kRecompute:
        return times.recompute;
      case ActionKind::kUpdate:
      case ActionKind::kSendForward:
      case ActionKind::kReceiveForward:
      case ActionKind::kSendBackward:
      case ActionKind::kReceiveBackward:
      case ActionKind::kReduceGradients:
      case ActionKind::kUnshard:
      case ActionKind::kReshard:
      case ActionKind::kPair:
      case ActionKind::kBarrier:
      case ActionKind::kMove:
        return kNoTime;
    }
    return kNoTime;
  }

  // Returns when the input that `work` waits for is there; kNotYet while that is not known.
  Duration arrival_of(const OrderedWork& work) const {
    const std::size_t at = stage_at(work);
    const TimedStage& stage = stages_[at];
    if (work.kind == ActionKind::kForward) {
      return work.stage > 0 && stage.joined ? forward_[place(at, work)] : kNoTime;
    }
    const bool begins = work.kind == ActionKind::kBackward ||
                        work.kind == ActionKind::kBackwardInput ||
                        (work.kind == ActionKind::kBackwardWeight && !stage.has_input);
    if (!begins || is_last(work) || !stages_[at + 1].carries) return kNoTime;
    return gradient_[place(at, work)];
  }

  void send(DeviceState& device, Duration end, Duration time, Duration hop, Duration& arrival) {
    device.sent = std::max(device.sent, end) + time;
    arrival = device.sent + hop;
  }

  void finish(DeviceState& device, const OrderedWork& work, Duration end) {
    const std::size_t at = stage_at(work);
    const TimedStage& stage = stages_[at];
    const bool small = is_short(work);
    if (work.kind == ActionKind::kForward) {
      if (!small) device.stash += stage.stash;
      device.most_stash = std::max(device.most_stash, device.stash);
      if (is_last(work) || !stages_[at + 1].joined) return;
      const TimedStage& next = stages_[at + 1];
      Duration& arrival = forward_[place(at + 1, work)];
      if (small || (next.down + next.down_hop) == kNoTime) {
        arrival = end;
      } else {
        send(device, end, next.down, next.down_hop, arrival);
      }
      return;
    }
    if (work.kind != ActionKind::kBackward && work.kind != ActionKind::kBackwardInput &&
        (work.kind != ActionKind::kBackwardWeight || stage.has_input)) {
      return;
    }
    if (!small) device.stash -= stage.stash;
    if (work.kind == ActionKind::kBackwardWeight || work.stage == 0 || !stage.carries) return;
    Duration& arrival = gradient_[place(at - 1, work)];
    if (small || (stage.up + stage.up_hop) == kNoTime) {
      arrival = end;
    } else {
      send(device, end, stage.up, stage.up_hop, arrival);
    }
  }

  // Returns the R that precedes a B, or an I whether or not the stage has one; zero where the
  // schedule places R itself.
  Duration again(const OrderedWork& work) const {
    const bool before =
        work.kind == ActionKind::kBackward || work.kind == ActionKind::kBackwardInput;
    if (!recompute_ || !before || is_short(work)) return kNoTime;
    return stages_[stage_at(work)].times.recompute;
  }

  bool run_device(std::size_t d, const DeviceOrder& order) {
    DeviceState& device = devices_[d];
    const std::size_t begun = device.next;
    while (device.next < order.size() && !too_long_) {
      const OrderedWork& work = order[device.next];
      const bool paired =
          work.overlaps_next && is_needed(work) && is_needed(order[device.next + 1]);
      const OrderedWork& second = order[device.next + (paired ? 1 : 0)];
      const bool needed = is_needed(work);
      const Duration arrival = paired   ? later_of(arrival_of(work), arrival_of(second))
                               : needed ? arrival_of(work)
                                        : kNoTime;
      if (arrival == kNotYet) break;
      device.free += again(second);
      if (needed) {
        const Duration length = length_of(work) + (paired ? length_of(second) : kNoTime);
        device.left -= length;
        device.may_idle -= std::max(kNoTime, arrival - device.free);
        too_long_ = too_long_ || device.may_idle < kNoTime;
        device.free = std::max(device.free, arrival) + length;
        device.worked = true;
        finish(device, work, device.free);
        if (paired) finish(device, second, device.free);
      }
      device.next += paired ? 2 : 1;
    }
    return device.next != begun;
  }

  static Duration later_of(Duration a, Duration b) {
    return a == kNotYet || b == kNotYet ? kNotYet : std::max(a, b);
  }

  Placement placement_;
  std::vector<DeviceState> devices_;
  std::size_t ways_;
  std::size_t of_way_;  // micro-batches
  std::size_t short_ = static_cast<std::size_t>(-1);
  std::size_t stages_of_way_ = 0;
  bool recompute_ = false;
  bool too_long_ = false;
  std::vector<TimedStage> stages_;  // by direction
  std::vector<Duration> forward_;   // by stage and micro-batch: when its input is there
  std::vector<Duration> gradient_;
};

}  // namespace

OrderTimes time_orders(const Shape& shape, const GroupClass& group, const ChainSums& sums,
                       const Cluster& group_cluster, const DeviceOrders& orders, Duration most) {
  return ListRunner(shape, group, sums, group_cluster).run(orders, most);
}

OrderTimer::OrderTimer(const ModelProfile& profile, const DeviceGroupClasses& device_classes,
                       const SpaceSums& sums, const SearchOptions& options, OrderTable& orders)
    : profile_(profile),
      device_classes_(device_classes),
      space_sums_(sums),
      options_(options),
      orders_(orders) {}

OrderProblem OrderTimer::describe(const Shape& shape, const GroupClass& group) const {
  OrderProblem problem;
  problem.devices = static_cast<int>(device_classes_.cluster(group.device_class).devices.size());
  problem.chunks = shape.variant.chunks;
  problem.micro_batches = group.share;
  problem.in_flight = shape.variant.in_flight;
  return problem;
}

const DeviceOrders& OrderTimer::orders_of(const Shape& shape, const GroupClass& group) {
  const ScheduleKind kind = shape.variant.schedule;
  OrderProblem problem = describe(shape, group);
  if (facts_of(kind).needs_costs) {
    const Cluster& group_cluster = device_classes_.cluster(group.device_class);
    const auto layers = static_cast<int>(profile_.layers.size());
    find_stage_times(make_group_plan(shape, group, group_cluster, options_, layers), PipelineId{0},
                     {profile_, group_cluster}, problem);
    return priced_ = make_orders(kind, problem);
  }
  return orders_.find(kind, problem);
}

OrderTimes OrderTimer::time(const Shape& shape, const GroupClass& group, Duration most) {
  try {
    const DeviceOrders& orders = orders_of(shape, group);
    const ChainSums& sums = space_sums_.of(shape);
    return time_orders(shape, group, sums, device_classes_.cluster(group.device_class), orders,
                       most);
  } catch (const InfeasibleError&) {
    return {};
  }
}

}  // namespace frazil
