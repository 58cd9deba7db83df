#include "planner/bounds/group_bound.h"

#include <algorithm>
#include <optional>

#include "planner/orders/linear_orders.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/linear_bounds.h"

namespace frazil {
namespace {

void raise(NamedBound& bound, Duration time, std::string_view name) {
  if (time > bound.time) bound = {time, name};
}

void raise_by_work(const GroupLoads& loads, NamedBound& bound) {
  for (const DeviceLoad& load : loads.devices) {
    if (!load.has_stage()) continue;
    if (loads.splits) {
      raise(bound, load.head + load.work + load.after(), "general-floor");
      raise(bound, load.head + load.work - load.weight + load.input_tail, "gradient-chain");
    } else {
      raise(bound, load.head + load.work + std::max(load.after(), load.tail), "busiest-device");
    }
  }
}

// The messages of a device. They leave one at a time, and none before the device's first F.
struct Sender {
  Duration first = kNever;
  Duration sent{0};
  Duration after = kNever;  // what follows the last message, at least

  void add(const StageLoad& stage, Duration messages, Duration followed) {
    if (messages == kNoTime) return;
    first = std::min(first, stage.head + stage.times.forward);
    sent += messages;
    after = std::min(after, followed);
  }
};

// Returns what a micro-batch still has before it at the end of its F on a stage that no later stage
// is joined to.
Duration turn_back(const StageLoad& stage, bool splits) {
  if (splits) return stage.times.input + stage.input_tail;
  return stage.backward + std::max(stage.tail, stage.after());
}

// Raises the bound to "messages", for one direction: what a device sends last is still to be worked
// on.
void raise_by_messages(const GroupLoads& loads, NamedBound& bound) {
  const std::vector<StageLoad>& stages = loads.stages;
  std::vector<Sender> senders(loads.devices.size());
  Duration returning = kNoTime;  // from the end of an F of the stage on
  for (std::size_t s = stages.size(); s-- > 0;) {
    const StageLoad& stage = stages[s];
    Sender& sender = senders[stage.device];
    if (s + 1 < stages.size() && stages[s + 1].joined) {
      const StageLoad& next = stages[s + 1];
      returning += next.down + next.times.forward;
      sender.add(stage, next.down_sent * loads.micro_batches, returning - next.down_sent);
    } else {
      returning = turn_back(stage, loads.splits);
    }
    if (!stage.carries) continue;
    const Duration tail = loads.splits ? stage.input_tail : stage.tail;
    sender.add(stage, stage.up_sent * loads.micro_batches, tail - stage.up_sent);
  }
  for (const Sender& sender : senders) {
    if (sender.sent > kNoTime) raise(bound, sender.first + sender.sent + sender.after, "messages");
  }
}

// Returns when the last stage's device has its last F at the earliest: the latest time over all
// devices whose last F leads there.
Duration find_turn(const GroupLoads& loads) {
  std::vector<Duration> forwards(loads.devices.size(), kNoTime);
  for (const StageLoad& stage : loads.stages) {
    forwards[stage.device] += stage.times.forward * loads.micro_batches;
  }
  Duration turn = kNoTime;
  std::vector<bool> seen(loads.devices.size(), false);
  Duration to_last = kNoTime;
  for (std::size_t s = loads.stages.size(); s-- > 0;) {
    const StageLoad& stage = loads.stages[s];
    if (!seen[stage.device]) {
      turn = std::max(turn, loads.devices[stage.device].head + forwards[stage.device] + to_last);
    }
    seen[stage.device] = true;
    if (!stage.joined) break;
    to_last += stage.times.forward + stage.down;
  }
  return turn;
}

// Raises the bound to "two-phases": on each device the backwards that a gradient from the last
// stage reaches, which begins there at the turn. Only the device's own R can run before the first
// of these backwards.
void raise_by_phases(const GroupLoads& loads, NamedBound& bound) {
  struct Backwards {
    Duration first{0};
    Duration work{0};
    Duration early{0};
  };
  std::vector<std::optional<Backwards>> reached(loads.devices.size());
  Duration first = find_turn(loads);
  for (std::size_t s = loads.stages.size(); s-- > 0;) {
    const StageLoad& stage = loads.stages[s];
    std::optional<Backwards>& own = reached[stage.device];
    if (!own) own = Backwards{first, kNoTime, kNoTime};
    own->work += (stage.backward + stage.times.recompute) * loads.micro_batches;
    own->early = std::max(own->early, stage.times.recompute);
    if (!stage.carries) break;
    first += stage.backward + stage.up;
  }
  for (std::size_t d = 0; d < loads.devices.size(); ++d) {
    if (!reached[d]) continue;
    const DeviceLoad& load = loads.devices[d];
    raise(bound,
          reached[d]->first + reached[d]->work - reached[d]->early +
              std::max(load.after(), load.tail),
          "two-phases");
  }
}

// Returns K by stage; empty if the schedule is not one that the linear bounds know.
std::vector<int> list_held(const ShapeVariant& variant, int micro_batches, int stages) {
  const ScheduleFacts& facts = facts_of(variant.schedule);
  if (!has_linear_bounds(facts)) return {};
  const int depth = facts.bounds == BoundClass::kTwoPhases
                        ? micro_batches
                        : variant.in_flight.value_or(facts.own_in_flight.on(stages));
  const bool falls =
      facts.bounds == BoundClass::kFalling || facts.bounds == BoundClass::kWeightsLast;
  std::vector<int> held;
  held.reserve(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) held.push_back(falls ? warm_up(depth, stages, s) : depth);
  return held;
}

// Describes the stages from `first` on; none if some boundary does not carry. All W of 2bp come
// last: without W it is a fused 1f1b of the stages that have an I.
std::optional<LinearPipeline> describe_pipeline(BoundClass bounds, const GroupLoads& loads,
                                                std::size_t first, const std::vector<int>& depths) {
  const bool weights_last = bounds == BoundClass::kWeightsLast;
  LinearPipeline pipeline;
  pipeline.micro_batches = loads.micro_batches;
  pipeline.splits_backward = loads.splits && !weights_last;
  pipeline.in_flight.assign(depths.begin() + static_cast<std::ptrdiff_t>(first), depths.end());
  if (bounds == BoundClass::kLevelInHalves) pipeline.release = ActivationRelease::kHalfAtInput;
  for (std::size_t s = first; s < loads.stages.size(); ++s) {
    const StageLoad& stage = loads.stages[s];
    const Duration weight = loads.splits ? stage.weight() : kNoTime;
    pipeline.times.push_back(
        {stage.times.forward, stage.backward - weight, weights_last ? kNoTime : weight});
    if (s == first) continue;
    if (!stage.joined || !stage.carries) return std::nullopt;
    pipeline.down.push_back(stage.down);
    pipeline.up.push_back(stage.up);
  }
  return pipeline;
}

void raise_by_linear_bounds(const ShapeVariant& variant, const GroupLoads& loads,
                            NamedBound& bound) {
  const std::vector<StageLoad>& stages = loads.stages;
  const auto depths = list_held(variant, loads.micro_batches, static_cast<int>(stages.size()));
  if (depths.empty()) return;
  const BoundClass bounds = facts_of(variant.schedule).bounds;
  const bool weights_last = bounds == BoundClass::kWeightsLast;
  // Stages before the first one with a backward are part of the head.
  std::size_t first = 0;
  const auto works = [&](const StageLoad& stage) {
    return weights_last ? stage.has_input : stage.has_backward;
  };
  while (first < stages.size() && !works(stages[first])) ++first;
  if (first == stages.size()) return;
  const auto pipeline = describe_pipeline(bounds, loads, first, depths);
  if (!pipeline) return;
  for (const LinearBound& linear : find_linear_bounds(*pipeline)) {
    for (std::size_t s = first; s < stages.size(); ++s) {
      const Duration weights = weights_last ? stages[s].weight() * loads.micro_batches : kNoTime;
      raise(bound, stages[s].head + linear.span_of_stage[s - first] + weights + stages[s].after(),
            linear.name);
    }
  }
}

}  // namespace

NamedBound bound_group(const ShapeVariant& variant, const GroupLoads& loads) {
  NamedBound bound{kNoTime, loads.splits ? "general-floor" : "busiest-device"};
  if (loads.micro_batches <= 0) return bound;
  raise_by_work(loads, bound);
  if (loads.ways > 1) return bound;
  raise_by_messages(loads, bound);
  if (variant.chunks == 1) raise_by_linear_bounds(variant, loads, bound);
  if (facts_of(variant.schedule).bounds == BoundClass::kTwoPhases) raise_by_phases(loads, bound);
  return bound;
}

}  // namespace frazil
