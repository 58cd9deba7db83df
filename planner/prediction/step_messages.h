#pragma once
// Finds the messages of a lowered step. For each boundary between devices and each micro-batch of
// its pipeline (or each two slices of the micro-batch with samples in common), one message is what
// F hands on, and if an edge carries a gradient, one message is what B or I hands back. The graph
// itself has them as dependencies with a delay alone.

#include <vector>

#include "planner/actions/message.h"
#include "planner/lowering/lower.h"

namespace frazil {

struct StepMessage {
  Message message;
  DeviceId from;
  DeviceId to;
  Bytes size;
  TaskId producer = kNoTask;  // makes what is sent
  TaskId send = kNoTask;      // kNoTask if no link of the sender has a bandwidth
  TaskId consumer = kNoTask;  // waits for the arrival
};

// Returns the messages by pipeline, boundary, micro-batch and slice, ascending, each forward before
// its backward. Requires: a step that was lowered from this plan.
std::vector<StepMessage> find_step_messages(const LoweredStep& step, const Plan& plan,
                                            const ModelProfile& profile, const Activity& activity);

}  // namespace frazil
