#include "planner/actions/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "planner/actions/message.h"
#include "planner/plan/gradient_waits.h"
#include "planner/plan/plan_topology.h"
#include "planner/plan/reduction_groups.h"
#include "planner/plan/stage_slices.h"
#include "planner/plan/tied_exchanges.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// The stages of its pipeline that a stage exchanges messages with, and the work it has to do.
struct StageLinks {
  const Stage* stage = nullptr;
  std::set<StageId> reads_from;
  std::set<StageId> feeds;
  std::set<StageId> gradients_from;  // over edges that carry a gradient
  std::set<StageId> gradients_to;
  bool has_input_gradient = false;   // I of some layer
  bool has_weight_gradient = false;  // W of some layer, and so an update
  bool has_other_owners = false;     // of a layer, or of a parameter tied to one
};

using PipelineLinks = std::vector<StageLinks>;  // by stage

StageLinks describe_stage(const Stage& stage, const Activity& activity) {
  StageLinks links;
  links.stage = &stage;
  links.has_other_owners = stage.devices.size() > 1;
  for_each_layer(stage, [&](LayerId id) {
    const LayerActivity& layer = activity.layers.at(id.index());
    links.has_input_gradient |= layer.input_gradient;
    links.has_weight_gradient |= layer.weight_gradient;
  });
  return links;
}

PipelineLinks link_stages(const Pipeline& pipeline, const ModelProfile& profile,
                          const Activity& activity) {
  PipelineLinks links;
  for (const Stage& stage : pipeline.stages) links.push_back(describe_stage(stage, activity));
  for (const StageCrossing& crossing : find_topology(pipeline, profile, activity).crossings) {
    links[crossing.to.index()].reads_from.insert(crossing.from);
    links[crossing.from.index()].feeds.insert(crossing.to);
    if (crossing.carrying.empty()) continue;
    links[crossing.from.index()].gradients_from.insert(crossing.to);
    links[crossing.to.index()].gradients_to.insert(crossing.from);
  }
  return links;
}

// Links the stages of every pipeline. Every pipeline holds the whole model, so with several
// pipelines each layer has several owners.
std::vector<PipelineLinks> link_pipelines(const Plan& plan, const ModelProfile& profile,
                                          const Activity& activity) {
  std::vector<PipelineLinks> links;
  for (const Pipeline& pipeline : plan.pipelines) {
    links.push_back(link_stages(pipeline, profile, activity));
    for (StageLinks& stage : links.back()) {
      stage.has_other_owners |= plan.pipelines.size() > 1;
    }
  }
  for (const TiedExchange& exchange : find_tied_exchanges(plan, profile, activity)) {
    for (const TiedUse& use : exchange.uses) {
      links[use.pipeline.index()][use.stage.index()].has_other_owners = true;
    }
  }
  return links;
}

Message make_message(const Action& cause, ActionKind kind, MicroBatchId micro_batch, StageId peer,
                     std::optional<std::int32_t> peer_slice) {
  const bool sends = kind == ActionKind::kSendForward || kind == ActionKind::kSendBackward;
  return {
      .pipeline = cause.pipeline,
      .from = sends ? cause.stage : peer,
      .to = sends ? peer : cause.stage,
      .backward = kind == ActionKind::kSendBackward || kind == ActionKind::kReceiveBackward,
      .micro_batch = micro_batch,
      .from_slice = sends ? cause.slice : peer_slice,
      .to_slice = sends ? peer_slice : cause.slice,
  };
}

// Appends one message per micro-batch and part of a peer that lies on another device and shares
// samples with the action; peers ascend because the set is ordered.
void append_messages(std::vector<Action>& list, const Action& cause, ActionKind kind,
                     const std::set<StageId>& peers, const Plan& plan) {
  if (peers.empty()) return;
  const Pipeline& pipeline = plan.pipelines[cause.pipeline.index()];
  const Stage& stage = pipeline.stages[cause.stage.index()];
  for (MicroBatchId m = cause.micro_batches->first; m <= cause.micro_batches->last; ++m.value) {
    const DeviceId here = device_of(pipeline, cause.stage, m, cause.slice);
    const int samples = samples_in(plan, m);
    const SampleInterval own = samples_of(stage, cause.slice, samples);
    for (const StageId peer : peers) {
      visit_parts(pipeline, peer, m, samples, own, [&](const StagePart& part) {
        if (part.device == here) return;
        const Message message = make_message(cause, kind, m, peer, part.slice);
        list.push_back(message.from == cause.stage ? send_of(message) : receive_of(message));
        list.back().step = cause.step;
      });
    }
  }
}

// Completes the list of one device, action by action.
class ListCompleter {
 public:
  ListCompleter(const Plan& plan, const std::vector<PipelineLinks>& links, bool barrier)
      : plan_(plan), links_(links), barrier_(barrier), waits_(has_gradient_waits(plan)) {}

  void append(const Action& action) {
    if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
      append_pair(action, *pair);
      return;
    }
    if (action.kind == ActionKind::kUpdate) {
      append_update(action);
      return;
    }
    ENSURE(action.micro_batches.has_value(),
           fmt::format("{} does not belong into a compute schedule", to_text(action)));
    if (is_needed(action)) {
      append_receives(action);
      list_.push_back(action);
      append_sends(action);
    }
  }

  // Appends the reductions and updates of the stages a device holds, at the end of its list.
  void finish(DeviceId device) {
    const std::vector<std::pair<PipelineId, StageId>> stages = stages_with_update(device);
    for (const auto& [pipeline, stage] : stages) {
      if (links(pipeline, stage).has_other_owners) {
        list_.push_back(make_stage_action(pipeline, stage, ActionKind::kReduceGradients));
      }
      if (!barrier_) list_.push_back(make_stage_action(pipeline, stage, ActionKind::kUpdate));
    }
    if (!barrier_ || stages.empty()) return;
    Action barrier;
    barrier.kind = ActionKind::kBarrier;
    list_.push_back(barrier);
    for (const auto& [pipeline, stage] : stages) {
      list_.push_back(make_stage_action(pipeline, stage, ActionKind::kUpdate));
    }
  }

  std::vector<Action> take() { return std::move(list_); }

 private:
  const StageLinks& links(PipelineId pipeline, StageId stage) const {
    return links_.at(pipeline.index()).at(stage.index());
  }

  bool is_needed(const Action& action) const {
    const StageLinks& stage = links(action.pipeline, action.stage);
    if (action.kind == ActionKind::kForward) return true;
    if (action.kind == ActionKind::kBackwardInput) {
      return stage.has_input_gradient || (waits_ && stage.has_weight_gradient);
    }
    if (action.kind == ActionKind::kBackwardWeight) return stage.has_weight_gradient;
    return stage.has_input_gradient || stage.has_weight_gradient;
  }

  // Appends an update that the schedule places itself, among its backwards.
  void append_update(const Action& action) {
    const StageLinks& stage = links(action.pipeline, action.stage);
    if (!stage.has_weight_gradient) return;
    if (stage.has_other_owners) {
      throw InfeasibleError(fmt::format(
          "{} stands among the backwards, where gradients of several devices are not added yet",
          to_text(action)));
    }
    if (barrier_) {
      throw InfeasibleError(fmt::format(
          "a global gradient norm needs all gradients before an update, but {} stands among the "
          "backwards",
          to_text(action)));
    }
    list_.push_back(action);
    updated_.emplace(action.pipeline, action.stage);
  }

  void append_pair(const Action& action, const ActionPair& pair) {
    const bool whole = std::all_of(pair.halves.begin(), pair.halves.end(),
                                   [&](const Action& half) { return is_needed(half); });
    if (!whole) {
      for (const Action& half : pair.halves) append(half);
      return;
    }
    for (const Action& half : pair.halves) append_receives(half);
    list_.push_back(action);
    for (const Action& half : pair.halves) append_sends(half);
  }

  void append_receives(const Action& action) {
    const StageLinks& stage = links(action.pipeline, action.stage);
    if (action.kind == ActionKind::kForward) {
      append_messages(list_, action, ActionKind::kReceiveForward, stage.reads_from, plan_);
    } else if (begins_backward(action, stage) && !has_waited(action)) {
      append_messages(list_, action, ActionKind::kReceiveBackward, stage.gradients_from, plan_);
      if (waits_ && action.kind == ActionKind::kBackwardInput) waited_.insert(key_of(action));
    }
  }

  using WorkKey = std::tuple<PipelineId, StageId, MicroBatchId>;
  static WorkKey key_of(const Action& action) {
    return {action.pipeline, action.stage, action.micro_batches->first};
  }

  // True for the W of an I without work, which has waited for the gradient (gradient_waits.h).
  bool has_waited(const Action& action) const {
    return action.kind == ActionKind::kBackwardWeight && waited_.count(key_of(action)) > 0;
  }

  // True if the action is the first of its backward. A stage without any I needs the gradient of
  // its outputs in W.
  static bool begins_backward(const Action& action, const StageLinks& stage) {
    return action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput ||
           (action.kind == ActionKind::kBackwardWeight && !stage.has_input_gradient);
  }

  void append_sends(const Action& action) {
    const StageLinks& stage = links(action.pipeline, action.stage);
    if (action.kind == ActionKind::kForward) {
      append_messages(list_, action, ActionKind::kSendForward, stage.feeds, plan_);
    } else if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput) {
      append_messages(list_, action, ActionKind::kSendBackward, stage.gradients_to, plan_);
    }
  }

  std::vector<std::pair<PipelineId, StageId>> stages_with_update(DeviceId device) const {
    std::vector<std::tuple<LayerId, PipelineId, StageId>> found;
    for (std::size_t p = 0; p < links_.size(); ++p) {
      for (std::size_t s = 0; s < links_[p].size(); ++s) {
        const StageLinks& candidate = links_[p][s];
        const std::vector<DeviceId>& devices = candidate.stage->devices;
        if (!candidate.has_weight_gradient || updated_.count({PipelineId{p}, StageId{s}}) > 0)
          continue;
        if (std::find(devices.begin(), devices.end(), device) == devices.end()) continue;
        found.emplace_back(candidate.stage->layers.front().first, PipelineId{p}, StageId{s});
      }
    }
    std::sort(found.begin(), found.end());
    std::vector<std::pair<PipelineId, StageId>> stages;
    stages.reserve(found.size());
    for (const auto& [layer, pipeline, stage] : found) stages.emplace_back(pipeline, stage);
    return stages;
  }

  const Plan& plan_;
  const std::vector<PipelineLinks>& links_;
  bool barrier_;
  bool waits_;
  std::set<WorkKey> waited_;
  std::vector<Action> list_;
  std::set<std::pair<PipelineId, StageId>> updated_;
};

}  // namespace

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (std::size_t device = 0; device < schedule.devices.size(); ++device) {
    text += fmt::format("d{}:", device);
    for (const Action& action : schedule.devices[device]) text += " " + to_text(action);
    text += "\n";
  }
  return text;
}

Schedule complete_schedule(const Schedule& compute, const Plan& plan, const ModelProfile& profile,
                           const Activity& activity, bool barrier) {
  const std::vector<PipelineLinks> links = link_pipelines(plan, profile, activity);
  Schedule completed;
  for (std::size_t device = 0; device < compute.devices.size(); ++device) {
    ListCompleter completer(plan, links, barrier);
    for (const Action& action : compute.devices[device]) completer.append(action);
    completer.finish(DeviceId{device});
    completed.devices.push_back(completer.take());
  }
  return completed;
}

}  // namespace frazil
