#include "planner/step_messages.h"

#include <algorithm>
#include <map>

#include "planner/stage_work.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Who makes and who awaits the results of a micro-batch in a stage.
struct StageMoments {
  TaskId forward = kNoTask;
  TaskId gradient = kNoTask;  // ends with the gradient of the stage's inputs
  TaskId backward = kNoTask;  // the first that needs the gradient of its outputs
};

class MessageFinder {
 public:
  MessageFinder(const LoweredStep& step, const Plan& plan) : plan_(plan) {
    std::size_t most_stages = 0;
    for (const Pipeline& pipeline : plan.pipelines) {
      most_stages = std::max(most_stages, pipeline.stages.size());
    }
    moments_.resize(most_stages * static_cast<std::size_t>(plan.micro_batches()));
    for (TaskId task = 0; task < step.graph.size(); ++task) note(task, step.actions[task]);
  }

  std::vector<StepMessage> find(const std::vector<PipelineTable>& table) {
    std::vector<StepMessage> found;
    for (std::size_t p = 0; p < table.size(); ++p) {
      const Pipeline& pipeline = plan_.pipelines[p];
      for (const StageBoundary& boundary : table[p].boundaries) {
        for (const MicroBatches& owned : pipeline.micro_batches) {
          for (MicroBatchId i = owned.first; i <= owned.last; ++i.value) {
            const DeviceId from = device_of(pipeline, boundary.from, i);
            const DeviceId to = device_of(pipeline, boundary.to, i);
            if (from == to) continue;
            found.push_back(make_forward(PipelineId{p}, boundary, from, to, i));
            if (!boundary.carries) continue;
            found.push_back(make_backward(PipelineId{p}, boundary, to, from, i));
          }
        }
      }
    }
    return found;
  }

 private:
  StageMoments& moments(StageId stage, MicroBatchId micro_batch) {
    return moments_[stage.index() * static_cast<std::size_t>(plan_.micro_batches()) +
                    micro_batch.index()];
  }

  void note(TaskId task, const Action& action) {
    if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
      for (const Action& half : pair->halves) note(task, half);
      return;
    }
    if (is_send(action)) sends_.emplace(message_of(action), task);
    if (!is_compute(action.kind) || !has_micro_batch(action.kind)) return;
    StageMoments& of_stage = moments(action.stage, action.micro_batches->first);
    const bool has_gradient =
        action.kind == ActionKind::kBackwardInput || action.kind == ActionKind::kBackward;
    if (action.kind == ActionKind::kForward) of_stage.forward = task;
    // A W comes after the I of its stage, if there is one.
    const bool waits = has_gradient || action.kind == ActionKind::kBackwardWeight;
    if (waits && of_stage.backward == kNoTask) of_stage.backward = task;
    if (has_gradient) of_stage.gradient = task;
  }

  StepMessage finish(StepMessage made) const {
    ENSURE(made.producer != kNoTask && made.consumer != kNoTask,
           "a message of a plan whose stages are in no list");
    if (const auto send = sends_.find(made.message); send != sends_.end()) made.send = send->second;
    return made;
  }

  StepMessage make_forward(PipelineId pipeline, const StageBoundary& boundary, DeviceId from,
                           DeviceId to, MicroBatchId i) {
    StepMessage made;
    made.message = {pipeline, boundary.from, boundary.to, false, i, {}};
    made.from = from;
    made.to = to;
    made.size = boundary.activation_per_sample * samples_in(plan_, i);
    made.producer = moments(boundary.from, i).forward;
    made.consumer = moments(boundary.to, i).forward;
    return finish(made);
  }

  StepMessage make_backward(PipelineId pipeline, const StageBoundary& boundary, DeviceId from,
                            DeviceId to, MicroBatchId i) {
    StepMessage made;
    made.message = {pipeline, boundary.to, boundary.from, true, i, {}};
    made.from = from;
    made.to = to;
    made.size = boundary.gradient_per_sample * samples_in(plan_, i);
    made.producer = moments(boundary.to, i).gradient;
    made.consumer = moments(boundary.from, i).backward;
    return finish(made);
  }

  const Plan& plan_;
  std::vector<StageMoments> moments_;  // by stage and micro-batch, which has one pipeline
  std::map<Message, TaskId> sends_;
};

Action make_side(const Message& message, StageId stage, StageId peer, ActionKind kind,
                 int neighbour) {
  Action action = make_action(message.pipeline, stage, kind, message.micro_batch);
  action.slice = message.slice;
  if (peer.value != stage.value + neighbour) action.peer = peer;
  return action;
}

}  // namespace

std::vector<StepMessage> find_step_messages(const LoweredStep& step, const Plan& plan,
                                            const ModelProfile& profile, const Activity& activity) {
  return MessageFinder(step, plan).find(make_stage_table(plan, profile, activity));
}

Action send_of(const Message& message) {
  return make_side(message, message.from, message.to,
                   message.backward ? ActionKind::kSendBackward : ActionKind::kSendForward,
                   message.backward ? -1 : 1);
}

Action receive_of(const Message& message) {
  return make_side(message, message.to, message.from,
                   message.backward ? ActionKind::kReceiveBackward : ActionKind::kReceiveForward,
                   message.backward ? 1 : -1);
}

}  // namespace frazil
