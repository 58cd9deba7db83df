#include "planner/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

// What a stage exchanges with the other stages of its pipeline, and whether it has work to do.
struct StageLinks {
  DeviceId device;
  LayerId first_layer;
  std::set<StageId> reads_from;  // on other devices; so are the three below
  std::set<StageId> feeds;
  std::set<StageId> gradients_from;  // over edges that carry a gradient
  std::set<StageId> gradients_to;
  bool has_input_gradient = false;   // I of some layer
  bool has_weight_gradient = false;  // W of some layer, and so an update
};

using PipelineLinks = std::vector<StageLinks>;

template <class Visit>
void for_each_layer(const Stage& stage, Visit visit) {
  for (const LayerRange& range : stage.layers) {
    for (LayerId id = range.first; id <= range.last; ++id.value) visit(id);
  }
}

StageLinks describe_stage(const Stage& stage, const std::string& name, const Activity& activity) {
  if (stage.devices.size() != 1) {
    throw InfeasibleError(
        fmt::format("{} lies on {} devices; stages on several devices are not scheduled yet", name,
                    stage.devices.size()));
  }
  StageLinks links;
  links.device = stage.devices.front();
  links.first_layer = stage.layers.front().first;
  for_each_layer(stage, [&](LayerId id) {
    const LayerActivity& layer = activity.layers.at(id.index());
    links.has_input_gradient |= layer.input_gradient;
    links.has_weight_gradient |= layer.weight_gradient;
  });
  return links;
}

std::vector<StageId> find_stages(const Pipeline& pipeline, std::size_t layers) {
  std::vector<StageId> stage_of(layers);
  for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
    for_each_layer(pipeline.stages[stage],
                   [&](LayerId id) { stage_of.at(id.index()) = StageId{stage}; });
  }
  return stage_of;
}

void refuse_tied_across_devices(const PipelineLinks& links, const std::vector<StageId>& stage_of,
                                const ModelProfile& profile, const Activity& activity) {
  for (const TiedParameter& tied : profile.tied) {
    std::set<DeviceId> devices;
    bool active = false;
    for (const LayerId layer : tied.layers) {
      devices.insert(links.at(stage_of.at(layer.index()).index()).device);
      active = active || activity.layers.at(layer.index()).weight_gradient;
    }
    if (active && devices.size() > 1) {
      throw InfeasibleError(
          fmt::format("the tied parameter {} is used on {} devices; adding its gradients across "
                      "devices is not interpreted yet",
                      tied.name, devices.size()));
    }
  }
}

PipelineLinks link_stages(const Pipeline& pipeline, PipelineId id, const ModelProfile& profile,
                          const Activity& activity) {
  PipelineLinks links;
  for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
    const std::string name = fmt::format("stage {} of pipeline {}", stage, id.value);
    links.push_back(describe_stage(pipeline.stages[stage], name, activity));
  }
  const std::vector<StageId> stage_of = find_stages(pipeline, profile.layers.size());
  refuse_tied_across_devices(links, stage_of, profile, activity);
  for (std::size_t i = 0; i < profile.edges.size(); ++i) {
    const StageId from = stage_of.at(profile.edges[i].from.index());
    const StageId to = stage_of.at(profile.edges[i].to.index());
    if (links[from.index()].device == links[to.index()].device) continue;
    links[to.index()].reads_from.insert(from);
    links[from.index()].feeds.insert(to);
    if (!activity.edge_carries.at(i)) continue;
    links[from.index()].gradients_from.insert(to);
    links[to.index()].gradients_to.insert(from);
  }
  return links;
}

// One message per micro-batch and peer; peers ascend because the set is ordered.
void append_messages(std::vector<Action>& list, const Action& cause, ActionKind kind,
                     const std::set<StageId>& peers) {
  for (MicroBatchId m = cause.micro_batches->first; m <= cause.micro_batches->last; ++m.value) {
    for (const StageId peer : peers) {
      Action message = make_action(cause.pipeline, cause.stage, kind, m);
      message.slice = cause.slice;
      message.step = cause.step;
      if (std::abs(peer.value - cause.stage.value) != 1) message.peer = peer;
      list.push_back(message);
    }
  }
}

// Completes the list of one device, action by action.
class ListCompleter {
 public:
  ListCompleter(const std::vector<PipelineLinks>& links, bool clip) : links_(links), clip_(clip) {}

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

  // Reductions and updates of the stages a device holds, at the end of its list.
  void finish(DeviceId device) {
    const std::vector<std::pair<PipelineId, StageId>> stages = stages_with_update(device);
    for (const auto& [pipeline, stage] : stages) {
      if (links_.size() > 1) {  // each pipeline holds the whole model
        list_.push_back(make_stage_action(pipeline, stage, ActionKind::kReduceGradients));
      }
      if (!clip_) list_.push_back(make_stage_action(pipeline, stage, ActionKind::kUpdate));
    }
    if (!clip_ || stages.empty()) return;
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
    if (action.kind == ActionKind::kBackwardInput) return stage.has_input_gradient;
    if (action.kind == ActionKind::kBackwardWeight) return stage.has_weight_gradient;
    return stage.has_input_gradient || stage.has_weight_gradient;
  }

  // An update that the schedule places itself, among its backwards.
  void append_update(const Action& action) {
    if (!links(action.pipeline, action.stage).has_weight_gradient) return;
    if (clip_) {
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
      append_messages(list_, action, ActionKind::kReceiveForward, stage.reads_from);
    } else if (begins_backward(action, stage)) {
      append_messages(list_, action, ActionKind::kReceiveBackward, stage.gradients_from);
    }
  }

  // A stage without any I needs the gradient of its outputs in W.
  static bool begins_backward(const Action& action, const StageLinks& stage) {
    return action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput ||
           (action.kind == ActionKind::kBackwardWeight && !stage.has_input_gradient);
  }

  void append_sends(const Action& action) {
    const StageLinks& stage = links(action.pipeline, action.stage);
    if (action.kind == ActionKind::kForward) {
      append_messages(list_, action, ActionKind::kSendForward, stage.feeds);
    } else if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput) {
      append_messages(list_, action, ActionKind::kSendBackward, stage.gradients_to);
    }
  }

  std::vector<std::pair<PipelineId, StageId>> stages_with_update(DeviceId device) const {
    std::vector<std::tuple<LayerId, PipelineId, StageId>> found;
    for (std::size_t pipeline = 0; pipeline < links_.size(); ++pipeline) {
      for (std::size_t stage = 0; stage < links_[pipeline].size(); ++stage) {
        const StageLinks& candidate = links_[pipeline][stage];
        if (candidate.device != device || !candidate.has_weight_gradient) continue;
        if (updated_.count({PipelineId{pipeline}, StageId{stage}}) > 0) continue;
        found.emplace_back(candidate.first_layer, PipelineId{pipeline}, StageId{stage});
      }
    }
    std::sort(found.begin(), found.end());
    std::vector<std::pair<PipelineId, StageId>> stages;
    stages.reserve(found.size());
    for (const auto& [layer, pipeline, stage] : found) stages.emplace_back(pipeline, stage);
    return stages;
  }

  const std::vector<PipelineLinks>& links_;
  bool clip_;
  std::vector<Action> list_;
  std::set<std::pair<PipelineId, StageId>> updated_;
};

// Splits at spaces that are not inside the parentheses of one action.
std::vector<std::string_view> split_actions(std::string_view text) {
  std::vector<std::string_view> actions;
  std::size_t first = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ' ' && depth <= 0)) {
      if (i > first) actions.push_back(text.substr(first, i - first));
      first = i + 1;
    } else if (text[i] == '(' || text[i] == ')') {
      depth += text[i] == '(' ? 1 : -1;
    }
  }
  return actions;
}

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

Schedule parse_schedule(std::string_view text, const std::string& file) {
  Schedule schedule;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view actions = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string head = fmt::format("d{}:", schedule.devices.size());
    if (actions.substr(0, head.size()) != head) {
      throw InputError(file, line, fmt::format("`{}`", actions), fmt::format("`{} ...`", head));
    }
    std::vector<Action>& list = schedule.devices.emplace_back();
    for (const std::string_view action : split_actions(actions.substr(head.size()))) {
      list.push_back(parse_action(action, file, line));
    }
  }
  return schedule;
}

Schedule complete_schedule(const Schedule& compute, const Plan& plan, const ModelProfile& profile,
                           const Activity& activity, bool clip) {
  std::vector<PipelineLinks> links;
  for (std::size_t i = 0; i < plan.pipelines.size(); ++i) {
    links.push_back(link_stages(plan.pipelines[i], PipelineId{i}, profile, activity));
  }
  Schedule completed;
  for (std::size_t device = 0; device < compute.devices.size(); ++device) {
    ListCompleter completer(links, clip);
    for (const Action& action : compute.devices[device]) completer.append(action);
    completer.finish(DeviceId{device});
    completed.devices.push_back(completer.take());
  }
  return completed;
}

}  // namespace frazil
