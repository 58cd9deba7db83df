#include "planner/actions/schedule_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "planner/plan/stage_slices.h"
#include "profiles/error.h"

namespace frazil {
namespace {

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

// Walks a compute schedule and notes, for each micro-batch of each stage, which kinds are done.
class ScheduleChecker {
 public:
  ScheduleChecker(const Plan& plan, const Activity& activity, const std::string& file,
                  const LineOf& line_of)
      : plan_(plan), activity_(activity), file_(file), line_of_(line_of) {}

  // Begins the list of a device.
  void enter(DeviceId device) { path_ = fmt::format("$.schedule.actions[{}]", device.value); }

  void check(DeviceId device, const Action& action) {
    if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
      refuse_own_backward(device, action, *pair);
      for (const Action& half : pair->halves) check(device, half);
      return;
    }
    const std::string where = fmt::format("{} on device {}", to_text(action), device.value);
    if (action.kind == ActionKind::kUpdate && plan_.versions != WeightVersions::kSync) {
      check_place(device, action, where);
      return;
    }
    if (!is_compute_kind(action.kind) || !action.micro_batches) {
      fail(where, "F, I, W, B, R or a pair of them");
    }
    const Pipeline& pipeline = check_place(device, action, where);
    check_slice(device, action, where);
    for (MicroBatchId m = action.micro_batches->first; m <= action.micro_batches->last; ++m.value) {
      if (!owns(pipeline, m)) fail(where, "micro-batches that its pipeline owns");
      mark(device, action, m, where);
    }
  }

  // Fails unless each stage has done all its work for every micro-batch that its pipeline owns.
  void finish() {
    path_ = "$.schedule.actions";
    for (std::size_t p = 0; p < plan_.pipelines.size(); ++p) {
      const Pipeline& pipeline = plan_.pipelines[p];
      for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
        for (const MicroBatches& interval : pipeline.micro_batches) {
          for (MicroBatchId m = interval.first; m <= interval.last; ++m.value) {
            const int samples = samples_in(plan_, m);
            for (const StagePart& part : find_parts(pipeline, StageId{s}, m, samples)) {
              require_complete(PipelineId{p}, StageId{s}, m, part.slice);
            }
          }
        }
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    const int line = line_of_ ? line_of_(path_) : 0;
    throw InputError(file_, line, found, expected);
  }

  // Fails if a pair has the backward of its own forward: such a pair would wait for itself.
  void refuse_own_backward(DeviceId device, const Action& action, const ActionPair& pair) const {
    const Action& forward = pair.halves.front();
    const Action& backward = pair.halves.back();
    if (forward.pipeline != backward.pipeline || forward.stage != backward.stage ||
        forward.micro_batches != backward.micro_batches) {
      return;
    }
    fail(fmt::format("{} on device {}", to_text(action), device.value),
         "a backward of another micro-batch than the forward beside it");
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

  void check_slice(DeviceId device, const Action& action, const std::string& where) const {
    const Stage& stage = plan_.pipelines[action.pipeline.index()].stages[action.stage.index()];
    const std::optional<std::int32_t> slice = slice_on(stage, device);
    if (slice == action.slice) return;
    fail(where, slice ? fmt::format("slice {}, which this device has of its stage", *slice)
                      : "whole micro-batches of a stage that does not share them by samples");
  }

  static bool owns(const Pipeline& pipeline, MicroBatchId m) {
    return std::any_of(
        pipeline.micro_batches.begin(), pipeline.micro_batches.end(),
        [&](const MicroBatches& interval) { return interval.first <= m && m <= interval.last; });
  }

  void mark(DeviceId device, const Action& action, MicroBatchId m, const std::string& where) {
    Kinds& done = done_[{action.pipeline, action.stage, m, action.slice}];
    const Pipeline& pipeline = plan_.pipelines[action.pipeline.index()];
    if (const DeviceId its = device_of(pipeline, action.stage, m, action.slice); its != device) {
      fail(where, fmt::format("micro-batch {} on device {}, whose turn it is", m.value, its.value));
    }
    const Kinds all_backward = kI | kW | kB;
    const bool weight_after_input =
        action.kind == ActionKind::kBackwardWeight && needed(action.pipeline, action.stage) & kI;
    const Kinds before =
        action.kind == ActionKind::kForward ? 0 : kF | (weight_after_input ? kI : 0);
    check_recompute(action, m, done, where);
    Kinds never = all_backward;
    if (action.kind == ActionKind::kForward) never = kF;
    if (action.kind == ActionKind::kBackwardWeight) never = kW | kB;
    if (action.kind == ActionKind::kRecompute) never = all_backward | kR;
    if ((done & before) != before) {
      fail(where,
           fmt::format("F before every backward of micro-batch {}, and I before W", m.value));
    }
    if ((done & never) != 0) {
      fail(where + " once more", fmt::format("one F and one backward of micro-batch {}", m.value));
    }
    done |= bit(action.kind);
  }

  // Fails if a stage that keeps its stash has an R, or if a stage that recomputes has no R before a
  // backward.
  void check_recompute(const Action& action, MicroBatchId m, Kinds done,
                       const std::string& where) const {
    const Stage& stage = plan_.pipelines[action.pipeline.index()].stages[action.stage.index()];
    const bool recomputes = stage.memory == MemoryPolicy::kRecompute;
    if (action.kind == ActionKind::kRecompute && !recomputes) {
      fail(where, "an R only in a stage that recomputes");
    }
    const bool begins_with_weights = (needed(action.pipeline, action.stage) & kI) == 0;
    const bool first_backward = action.kind == ActionKind::kBackward ||
                                action.kind == ActionKind::kBackwardInput ||
                                (action.kind == ActionKind::kBackwardWeight && begins_with_weights);
    if (recomputes && first_backward && needed(action.pipeline, action.stage) != 0 &&
        (done & kR) == 0) {
      fail(where, fmt::format("the R of micro-batch {} before it", m.value));
    }
  }

  // Returns kI if some layer of the stage has an I, and kW if some layer has a W.
  Kinds needed(PipelineId pipeline, StageId stage) const {
    Kinds kinds = 0;
    for_each_layer(plan_.pipelines[pipeline.index()].stages[stage.index()], [&](LayerId id) {
      const LayerActivity& layer = activity_.layers.at(id.index());
      kinds |= (layer.input_gradient ? kI : 0) | (layer.weight_gradient ? kW : 0);
    });
    return kinds;
  }

  void require_complete(PipelineId pipeline, StageId stage, MicroBatchId m,
                        std::optional<std::int32_t> slice) const {
    const auto entry = done_.find({pipeline, stage, m, slice});
    Kinds done = entry == done_.end() ? 0 : entry->second;
    if ((done & kB) != 0) done |= kI | kW;
    const Kinds missing = (kF | needed(pipeline, stage)) & ~done;
    if (missing == 0) return;
    const ActionKind kind = (missing & kF) != 0   ? ActionKind::kForward
                            : (missing & kI) != 0 ? ActionKind::kBackward
                                                  : ActionKind::kBackwardWeight;
    Action action = make_action(pipeline, stage, kind, m);
    action.slice = slice;
    fail(fmt::format("no {} on any device", to_text(action)),
         "every owned micro-batch in every stage");
  }

  const Plan& plan_;
  const Activity& activity_;
  std::string file_;
  LineOf line_of_;
  std::string path_;  // JSON path in a plan file of the part being checked
  std::map<std::tuple<PipelineId, StageId, MicroBatchId, std::optional<std::int32_t>>, Kinds> done_;
};

}  // namespace

void validate_schedule(const Schedule& compute, const Plan& plan, const Activity& activity,
                       const std::string& file, const LineOf& line_of) {
  ScheduleChecker checker(plan, activity, file, line_of);
  for (std::size_t device = 0; device < compute.devices.size(); ++device) {
    checker.enter(DeviceId{device});
    for (const Action& action : compute.devices[device]) checker.check(DeviceId{device}, action);
  }
  checker.finish();
}

}  // namespace frazil
