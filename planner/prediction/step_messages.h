#pragma once
// The messages of a lowered step, by boundary: for each boundary between devices and each
// micro-batch of its pipeline, or each two slices of it that have samples in common, what F hands
// on, and where an edge carries a gradient what B or I hands back. The graph itself knows them as
// dependencies with a delay alone.

#include <vector>

#include "planner/actions/message.h"
#include "planner/lowering/lower.h"

namespace frazil {

struct StepMessage {
  Message message;
  DeviceId from;
  DeviceId to;
  Bytes size;
  TaskId producer = kNoTask;  // ends with what is sent
  TaskId send = kNoTask;      // kNoTask: no link of the sender has a bandwidth
  TaskId consumer = kNoTask;  // waits for the arrival
};

// Pipelines, boundaries, micro-batches and slices ascending; each forward before its backward.
// Requires: a step that was lowered from this plan.
std::vector<StepMessage> find_step_messages(const LoweredStep& step, const Plan& plan,
                                            const ModelProfile& profile, const Activity& activity);

}  // namespace frazil
