#pragma once
// Schedules of what-ifs without a model, to be said as PyTorch's pipelining does.

#include <functional>
#include <optional>
#include <string>

#include "planner/interop/pytorch_csv.h"
#include "planner/plan/schedule_facts.h"
#include "planner/what_if/what_if.h"

namespace frazil {

// F of 2 ms, I of 3, W of 1, hops of 1.
WhatIfInputs make_inputs(ScheduleKind kind, int stages, int micro_batches,
                         std::optional<int> chunks = std::nullopt);
Schedule compute_of(const WhatIfInputs& inputs);
Schedule completed_of(const WhatIfInputs& inputs);

// Of a schedule that needs one file.
std::string only_csv(const Schedule& schedule, PytorchDialect dialect);

// Whether all lists end where a device has one message open at a time, until its other end is too.
bool run_in_lockstep(const Schedule& schedule);

bool is_expressible(const ScheduleFacts& facts);

// Every schedule that PyTorch can say, in several sizes.
void for_each_expressible(
    const std::function<void(const WhatIfInputs&, const ScheduleFacts&)>& visit);

}  // namespace frazil
