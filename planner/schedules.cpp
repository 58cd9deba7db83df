#include "planner/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "profiles/error.h"

namespace frazil {
namespace {

using StageList = std::vector<Action>;

std::vector<MicroBatchId> owned_micro_batches(const Pipeline& pipeline) {
  std::vector<MicroBatchId> owned;
  for (const MicroBatches& interval : pipeline.micro_batches) {
    for (MicroBatchId m = interval.first; m <= interval.last; ++m.value) owned.push_back(m);
  }
  return owned;
}

void refuse_options(const NamedSchedule& schedule, bool takes_in_flight) {
  const std::string_view name = schedule_name(schedule.kind);
  if (schedule.chunks != 1) {
    throw InfeasibleError(
        fmt::format("{} has one chunk per device, not {}", name, schedule.chunks));
  }
  if (schedule.in_flight && !takes_in_flight) {
    throw InfeasibleError(
        fmt::format("{} holds all micro-batches in flight; in-flight {} is not defined for it",
                    name, *schedule.in_flight));
  }
}

// Forwards of stage s before its first backward: min(K, 1 + ceil((K-1)(p-1-s)/(p-1))), K at p = 1.
int find_warm_up(int in_flight, int stages, int stage) {
  if (stages == 1) return in_flight;
  const std::int64_t others = stages - 1;
  const std::int64_t after = stages - 1 - stage;
  const std::int64_t raised = ((std::int64_t{in_flight} - 1) * after + others - 1) / others;
  return static_cast<int>(std::min<std::int64_t>(in_flight, 1 + raised));
}

// Stages of one pipeline on the same device: forwards in stage order, backwards against it, so that
// no stage waits for one further down the list.
void append_gpipe(const Pipeline& pipeline, PipelineId id, Schedule& schedule) {
  const std::vector<MicroBatchId> owned = owned_micro_batches(pipeline);
  const std::size_t stages = pipeline.stages.size();
  const auto append_all = [&](std::size_t stage, ActionKind kind) {
    StageList& list = schedule.devices.at(pipeline.stages[stage].devices.front().index());
    for (const MicroBatchId m : owned) list.push_back(make_action(id, StageId{stage}, kind, m));
  };
  for (std::size_t s = 0; s < stages; ++s) append_all(s, ActionKind::kForward);
  for (std::size_t s = stages; s > 0; --s) append_all(s - 1, ActionKind::kBackward);
}

void refuse_shared_device(const Pipeline& pipeline, PipelineId id, std::string_view name) {
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    for (std::size_t earlier = 0; earlier < s; ++earlier) {
      if (pipeline.stages[earlier].devices != pipeline.stages[s].devices) continue;
      throw InfeasibleError(fmt::format(
          "{} places one stage of a pipeline on a device, but stages {} and {} of pipeline {} lie "
          "on device {}",
          name, earlier, s, id.value, pipeline.stages[s].devices.front().value));
    }
  }
}

void append_one_forward_one_backward(const Pipeline& pipeline, PipelineId id, int in_flight,
                                     Schedule& schedule) {
  const std::vector<MicroBatchId> owned = owned_micro_batches(pipeline);
  const int stages = static_cast<int>(pipeline.stages.size());
  for (int s = 0; s < stages; ++s) {
    const StageId stage{s};
    StageList& list = schedule.devices.at(pipeline.stages[stage.index()].devices.front().index());
    const std::size_t warm_up =
        std::min(owned.size(), static_cast<std::size_t>(find_warm_up(in_flight, stages, s)));
    for (std::size_t i = 0; i < warm_up; ++i) {
      list.push_back(make_action(id, stage, ActionKind::kForward, owned[i]));
    }
    for (std::size_t i = 0; i < owned.size(); ++i) {
      list.push_back(make_action(id, stage, ActionKind::kBackward, owned[i]));
      if (i + warm_up < owned.size()) {
        list.push_back(make_action(id, stage, ActionKind::kForward, owned[i + warm_up]));
      }
    }
  }
}

// Micro-batches in flight when a plan names none: enough to hide the way down and back, or twice
// as many, so that transfers overlap too.
int default_in_flight(ScheduleKind kind, const Pipeline& pipeline) {
  const int stages = static_cast<int>(pipeline.stages.size());
  return kind == ScheduleKind::kEagerOneForwardOneBackward ? 2 * stages - 1 : stages;
}

void append_pipeline(const NamedSchedule& chosen, const Pipeline& pipeline, PipelineId id,
                     Schedule& schedule) {
  switch (chosen.kind) {
    case ScheduleKind::kGpipe:
      refuse_options(chosen, false);
      append_gpipe(pipeline, id, schedule);
      return;
    case ScheduleKind::kOneForwardOneBackward:
    case ScheduleKind::kEagerOneForwardOneBackward:
      refuse_options(chosen, true);
      refuse_shared_device(pipeline, id, schedule_name(chosen.kind));
      append_one_forward_one_backward(
          pipeline, id, chosen.in_flight.value_or(default_in_flight(chosen.kind, pipeline)),
          schedule);
      return;
    case ScheduleKind::kInterleaved:
    case ScheduleKind::kLoopedBfs:
    case ScheduleKind::kZbH1:
    case ScheduleKind::kZbH2:
    case ScheduleKind::kZbHeuristic:
    case ScheduleKind::kZbV:
    case ScheduleKind::kVHalf:
    case ScheduleKind::kVMin:
    case ScheduleKind::kInterleavedZb:
    case ScheduleKind::kDualPipe:
    case ScheduleKind::kDualPipeV:
    case ScheduleKind::kChimera:
    case ScheduleKind::kBitPipe:
    case ScheduleKind::kHanayo:
    case ScheduleKind::kTwoBp:
    case ScheduleKind::kPipeDream:
    case ScheduleKind::kPipeDream2Bw:
    case ScheduleKind::kVaruna:
      throw InfeasibleError(
          fmt::format("the schedule {} is not generated yet", schedule_name(chosen.kind)));
  }
}

void refuse_stage(const Stage& stage, const std::string& name) {
  if (stage.axis != DeviceAxis::kData) {
    throw InfeasibleError(
        fmt::format("{} shares its devices along an axis other than data, which "
                    "is not interpreted yet",
                    name));
  }
  if (stage.devices.size() != 1) {
    throw InfeasibleError(
        fmt::format("{} lies on {} devices; stages on several devices are not scheduled yet", name,
                    stage.devices.size()));
  }
  if (stage.memory != MemoryPolicy::kKeep) {
    throw InfeasibleError(
        fmt::format("{} has a memory policy other than keep, which is not interpreted yet", name));
  }
}

void refuse_what_is_not_interpreted(const Plan& plan) {
  if (plan.versions != WeightVersions::kSync) {
    throw InfeasibleError("weight versions other than sync are not interpreted yet");
  }
  if (plan.cache_frozen_prefix) {
    throw InfeasibleError("a cached frozen prefix is not interpreted yet");
  }
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const std::vector<Stage>& stages = plan.pipelines[p].stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      refuse_stage(stages[s], fmt::format("stage {} of pipeline {}", s, p));
    }
  }
}

// An activity in which no layer needs a backward: what can be said of a given schedule without a
// model. validate() in plan.h says the rest.
Activity forward_only(const Plan& plan) {
  int layers = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      for (const LayerRange& range : stage.layers) layers = std::max(layers, range.last.value + 1);
    }
  }
  return {.layers = std::vector<LayerActivity>(static_cast<std::size_t>(layers)),
          .edge_carries = {}};
}

bool is_compute_kind(ActionKind kind) {
  return kind == ActionKind::kForward || kind == ActionKind::kBackwardInput ||
         kind == ActionKind::kBackwardWeight || kind == ActionKind::kBackward ||
         kind == ActionKind::kRecompute;
}

// A set of action kinds.
using Kinds = unsigned;
constexpr Kinds bit(ActionKind kind) { return 1U << static_cast<unsigned>(kind); }
constexpr Kinds kF = bit(ActionKind::kForward);
constexpr Kinds kI = bit(ActionKind::kBackwardInput);
constexpr Kinds kW = bit(ActionKind::kBackwardWeight);
constexpr Kinds kB = bit(ActionKind::kBackward);
constexpr Kinds kR = bit(ActionKind::kRecompute);

// Walks a compute schedule and keeps, for each micro-batch of each stage, what was done so far.
class ScheduleChecker {
 public:
  ScheduleChecker(const Plan& plan, const Activity& activity, const std::string& file)
      : plan_(plan), activity_(activity), file_(file) {}

  void check(DeviceId device, const Action& action) {
    if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
      for (const Action& half : pair->halves) check(device, half);
      return;
    }
    const std::string where = fmt::format("{} on device {}", to_text(action), device.value);
    if (!is_compute_kind(action.kind) || !action.micro_batches) {
      fail(where, "F, I, W, B, R or a pair of them");
    }
    if (action.slice) {
      throw InfeasibleError(fmt::format("{}: slices are not interpreted yet", where));
    }
    const Pipeline& pipeline = check_place(device, action, where);
    for (MicroBatchId m = action.micro_batches->first; m <= action.micro_batches->last; ++m.value) {
      if (!owns(pipeline, m)) fail(where, "micro-batches that its pipeline owns");
      mark(device, action, m, where);
    }
  }

  // Everything each stage must do has been done for every micro-batch it owns.
  void finish() const {
    for (std::size_t p = 0; p < plan_.pipelines.size(); ++p) {
      const Pipeline& pipeline = plan_.pipelines[p];
      for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
        for (const MicroBatches& interval : pipeline.micro_batches) {
          for (MicroBatchId m = interval.first; m <= interval.last; ++m.value) {
            require_complete(PipelineId{p}, StageId{s}, m);
          }
        }
      }
    }
  }

 private:
  struct Done {
    DeviceId device;
    Kinds kinds = 0;
  };

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InputError(file_, 0, found, expected);
  }

  const Pipeline& check_place(DeviceId device, const Action& action,
                              const std::string& where) const {
    if (action.pipeline.index() >= plan_.pipelines.size()) {
      fail(where, fmt::format("one of {} pipelines", plan_.pipelines.size()));
    }
    const Pipeline& pipeline = plan_.pipelines[action.pipeline.index()];
    if (action.stage.index() >= pipeline.stages.size()) {
      fail(where, fmt::format("one of {} stages", pipeline.stages.size()));
    }
    const std::vector<DeviceId>& devices = pipeline.stages[action.stage.index()].devices;
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      fail(where, "an action of a stage that lies on this device");
    }
    return pipeline;
  }

  static bool owns(const Pipeline& pipeline, MicroBatchId m) {
    return std::any_of(
        pipeline.micro_batches.begin(), pipeline.micro_batches.end(),
        [&](const MicroBatches& interval) { return interval.first <= m && m <= interval.last; });
  }

  void mark(DeviceId device, const Action& action, MicroBatchId m, const std::string& where) {
    Done& done = done_[{action.pipeline, action.stage, m}];
    if (done.kinds != 0 && done.device != device) {
      fail(where, fmt::format("all of micro-batch {} on device {}", m.value, done.device.value));
    }
    const Kinds all_backward = kI | kW | kB;
    const bool weight_after_input =
        action.kind == ActionKind::kBackwardWeight && needed(action.pipeline, action.stage) & kI;
    const Kinds before =
        action.kind == ActionKind::kForward ? 0 : kF | (weight_after_input ? kI : 0);
    Kinds never = all_backward;
    if (action.kind == ActionKind::kForward) never = kF;
    if (action.kind == ActionKind::kBackwardWeight) never = kW | kB;
    if (action.kind == ActionKind::kRecompute) never = all_backward | kR;
    if ((done.kinds & before) != before) {
      fail(where,
           fmt::format("F before every backward of micro-batch {}, and I before W", m.value));
    }
    if ((done.kinds & never) != 0) {
      fail(where + " once more", fmt::format("one F and one backward of micro-batch {}", m.value));
    }
    done = {device, done.kinds | bit(action.kind)};
  }

  // kI and kW as far as some layer of the stage has them.
  Kinds needed(PipelineId pipeline, StageId stage) const {
    Kinds kinds = 0;
    for (const LayerRange& range : plan_.pipelines[pipeline.index()].stages[stage.index()].layers) {
      for (LayerId id = range.first; id <= range.last; ++id.value) {
        const LayerActivity& layer = activity_.layers.at(id.index());
        kinds |= (layer.input_gradient ? kI : 0) | (layer.weight_gradient ? kW : 0);
      }
    }
    return kinds;
  }

  void require_complete(PipelineId pipeline, StageId stage, MicroBatchId m) const {
    const auto entry = done_.find({pipeline, stage, m});
    Kinds done = entry == done_.end() ? 0 : entry->second.kinds;
    if ((done & kB) != 0) done |= kI | kW;
    const Kinds missing = (kF | needed(pipeline, stage)) & ~done;
    if (missing == 0) return;
    const ActionKind kind = (missing & kF) != 0   ? ActionKind::kForward
                            : (missing & kI) != 0 ? ActionKind::kBackward
                                                  : ActionKind::kBackwardWeight;
    const std::string name = to_text(make_action(pipeline, stage, kind, m));
    fail(fmt::format("no {} on any device", name), "every owned micro-batch in every stage");
  }

  const Plan& plan_;
  const Activity& activity_;
  std::string file_;
  std::map<std::tuple<PipelineId, StageId, MicroBatchId>, Done> done_;
};

}  // namespace

const std::vector<ScheduleFamily>& schedule_families() {
  static const std::vector<ScheduleFamily> families{
      {ScheduleKind::kGpipe, "all forwards, then all backwards"},
      {ScheduleKind::kOneForwardOneBackward,
       "a backward as soon as there is one; p micro-batches in flight"},
      {ScheduleKind::kEagerOneForwardOneBackward,
       "1f1b with 2p - 1 micro-batches in flight, which hides transfers"},
  };
  return families;
}

Schedule make_schedule(const Plan& plan, int devices) {
  refuse_what_is_not_interpreted(plan);
  if (std::holds_alternative<DispatchPolicy>(plan.schedule)) {
    throw InfeasibleError("dispatch policies are not interpreted yet");
  }
  if (const auto* given = std::get_if<ExplicitSchedule>(&plan.schedule)) {
    ENSURE(given->devices.size() == static_cast<std::size_t>(devices),
           "an explicit schedule has one list per device");
    validate_schedule({given->devices}, plan, forward_only(plan), "schedule");
    return {given->devices};
  }
  Schedule schedule;
  schedule.devices.resize(static_cast<std::size_t>(devices));
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    append_pipeline(std::get<NamedSchedule>(plan.schedule), plan.pipelines[p], PipelineId{p},
                    schedule);
  }
  return schedule;
}

void validate_schedule(const Schedule& compute, const Plan& plan, const Activity& activity,
                       const std::string& file) {
  ScheduleChecker checker(plan, activity, file);
  for (std::size_t device = 0; device < compute.devices.size(); ++device) {
    for (const Action& action : compute.devices[device]) checker.check(DeviceId{device}, action);
  }
  checker.finish();
}

}  // namespace frazil
