#pragma once
// Finds the messages of a lowered step. Between two stages of a pipeline that edges join, every
// micro-batch has one message that F hands on if the devices that work on it differ, and, if the
// activity says that some of these edges carries a gradient, one that B or I hands back. If a stage
// has slices, each pair of slices with samples in common has messages of its own. The graph knows
// no messages: it has a SEND task and a delay for each, or the delay alone if no link of the sender
// has a bandwidth.

#include <vector>

#include "planner/actions/message.h"
#include "planner/lowering/lower.h"

namespace frazil {

struct StepMessage {
  Message message;
  DeviceId from;
  DeviceId to;
  // Logical bytes of the samples sent, over all edges between the stages; of a gradient, over those
  // that carry one. What two edges read counts twice.
  Bytes size;
  TaskId producer = kNoTask;  // makes what is sent
  TaskId send = kNoTask;      // kNoTask if no link of the sender has a bandwidth
  TaskId consumer = kNoTask;  // waits for the arrival
};

// Returns the messages by pipeline, boundary, micro-batch and slice, ascending, each forward before
// its backward. Requires: a step that was lowered from this plan with this activity.
std::vector<StepMessage> find_step_messages(const LoweredStep& step, const Plan& plan,
                                            const ModelProfile& profile, const Activity& activity);

}  // namespace frazil
