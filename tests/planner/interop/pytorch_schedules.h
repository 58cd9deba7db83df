#pragma once
// Makes schedules of what-ifs without a model, to be exported to PyTorch's pipelining.

#include <functional>
#include <optional>
#include <string>

#include "planner/interop/pytorch_csv.h"
#include "planner/plan/schedule_facts.h"
#include "planner/what_if/what_if.h"

namespace frazil {

// Makes inputs with F of 2 ms, I of 3 ms, W of 1 ms and hops of 1 ms.
WhatIfInputs make_inputs(ScheduleKind kind, int stages, int micro_batches,
                         std::optional<int> chunks = std::nullopt);
Schedule compute_of(const WhatIfInputs& inputs);
Schedule completed_of(const WhatIfInputs& inputs);

// Returns the CSV of a schedule that needs one file.
std::string only_csv(const Schedule& schedule, PytorchDialect dialect);

// True if all lists come to their end with blocking calls: a device waits at each message until the
// peer has come to its end of the message.
bool run_in_lockstep(const Schedule& schedule);

bool is_expressible(const ScheduleFacts& facts);

// Visits every schedule that PyTorch can express, in several sizes.
void for_each_expressible(
    const std::function<void(const WhatIfInputs&, const ScheduleFacts&)>& visit);

}  // namespace frazil
