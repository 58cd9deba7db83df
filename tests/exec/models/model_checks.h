#pragma once
// Every small model is held to these checks.

#include "tests/exec/models/model_plans.h"
#include "tests/exec/models/plain_training.h"

namespace frazil {

// Two steps of plain descent on one device have the bits of the same steps written plainly: loss,
// all gradients as they go into the update, all weights. An empty mask is the model's own. In bf16
// the plain steps run under autocast as PyTorch's context does.
void expect_plain_bits(const TestModel& model, const std::string& mask = {},
                       Precision precision = Precision::kFp32);

// Runs plans with other cuts, replicas, shared stages, schedules, recomputing and measuring, at 5
// and 8 micro-batches, with a short last batch; each has the bits of one device. Returns how many
// plans were run.
int expect_bits_of_one_device(const TestModel& model, const OptimizerConfig& optimizer);

}  // namespace frazil
