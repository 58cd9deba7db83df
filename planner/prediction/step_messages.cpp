#include "planner/prediction/step_messages.h"

#include <map>
#include <utility>

#include "planner/lowering/stage_work.h"
#include "planner/plan/stage_slices.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// The tasks that make and that await the results of a micro-batch in a stage.
struct StageMoments {
  TaskId forward = kNoTask;
  TaskId gradient = kNoTask;  // ends with the gradient of the stage's inputs
  TaskId backward = kNoTask;  // the first task that needs the gradient of the stage's outputs
};

class MessageFinder {
 public:
  MessageFinder(const LoweredStep& step, const Plan& plan)
      : plan_(plan),
        rows_(plan.pipelines),
        moments_(rows_.count() * static_cast<std::size_t>(plan.micro_batches())) {
    for (TaskId task = 0; task < step.graph.size(); ++task) note(task, step.actions[task]);
  }

  std::vector<StepMessage> find(const std::vector<PipelineTable>& table) {
    std::vector<StepMessage> found;
    for (std::size_t p = 0; p < table.size(); ++p) {
      for (const StageBoundary& boundary : table[p].boundaries) {
        for (const MicroBatches& owned : plan_.pipelines[p].micro_batches) {
          for (MicroBatchId i = owned.first; i <= owned.last; ++i.value) {
            add_messages(PipelineId{p}, boundary, i, found);
          }
        }
      }
    }
    return found;
  }

 private:
  StageMoments& moments(PipelineId pipeline, StageId stage, std::optional<std::int32_t> slice,
                        MicroBatchId micro_batch) {
    return moments_[rows_.of(pipeline, stage, slice) *
                        static_cast<std::size_t>(plan_.micro_batches()) +
                    micro_batch.index()];
  }

  void note(TaskId task, const Action& action) {
    if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
      for (const Action& half : pair->halves) note(task, half);
      return;
    }
    if (is_send(action)) sends_.emplace(message_of(action), task);
    if (!is_compute(action.kind) || !has_micro_batch(action.kind)) return;
    StageMoments& of_stage =
        moments(action.pipeline, action.stage, action.slice, action.micro_batches->first);
    const bool has_gradient =
        action.kind == ActionKind::kBackwardInput || action.kind == ActionKind::kBackward;
    if (action.kind == ActionKind::kForward) of_stage.forward = task;
    // A W comes after the I of its stage if the stage has an I; the I is then the first that waits.
    const bool waits = has_gradient || action.kind == ActionKind::kBackwardWeight;
    if (waits && of_stage.backward == kNoTask) of_stage.backward = task;
    if (has_gradient) of_stage.gradient = task;
  }

  void add_messages(PipelineId pipeline, const StageBoundary& boundary, MicroBatchId i,
                    std::vector<StepMessage>& found) {
    const Pipeline& of = plan_.pipelines[pipeline.index()];
    const int all = samples_in(plan_, i);
    for (const StagePart& from : find_parts(of, boundary.from, i, all)) {
      for (const StagePart& to : find_parts(of, boundary.to, i, all, from.samples)) {
        if (from.device == to.device) continue;
        const Message forward{.pipeline = pipeline,
                              .from = boundary.from,
                              .to = boundary.to,
                              .backward = false,
                              .micro_batch = i,
                              .from_slice = from.slice,
                              .to_slice = to.slice};
        const StageMoments& upper = moments(pipeline, boundary.from, from.slice, i);
        const StageMoments& lower = moments(pipeline, boundary.to, to.slice, i);
        const int samples = to.samples.count();
        found.push_back(finish({.message = forward,
                                .from = from.device,
                                .to = to.device,
                                .size = boundary.activation_per_sample * samples,
                                .producer = upper.forward,
                                .consumer = lower.forward}));
        if (!boundary.carries) continue;
        found.push_back(finish({.message = turn_back(forward),
                                .from = to.device,
                                .to = from.device,
                                .size = boundary.gradient_per_sample * samples,
                                .producer = lower.gradient,
                                .consumer = upper.backward}));
      }
    }
  }

  static Message turn_back(Message message) {
    std::swap(message.from, message.to);
    std::swap(message.from_slice, message.to_slice);
    message.backward = true;
    return message;
  }

  StepMessage finish(StepMessage made) const {
    ENSURE(made.producer != kNoTask && made.consumer != kNoTask,
           "a message of a plan whose stages are in no list");
    if (const auto send = sends_.find(made.message); send != sends_.end()) made.send = send->second;
    return made;
  }

  const Plan& plan_;
  PartRows rows_;
  std::vector<StageMoments> moments_;  // by part of a stage and micro-batch
  std::map<Message, TaskId> sends_;
};

}  // namespace

std::vector<StepMessage> find_step_messages(const LoweredStep& step, const Plan& plan,
                                            const ModelProfile& profile, const Activity& activity) {
  return MessageFinder(step, plan).find(make_stage_table(plan, profile, activity));
}

}  // namespace frazil
