#pragma once
// Schedules as CSV of torch.distributed.pipelining (PyTorch 2.11), both ways: row r is what rank r
// does, no header, a cell is an action as in traces/action.h. The two dialects and what PyTorch
// demands of the rows: planner/interop/pytorch_rules.h. Only compute_only has empty cells, which
// are bubbles. Older files are in a third, the legacy dialect: B for I and BW for B.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/actions/schedule.h"
#include "planner/interop/pytorch_rules.h"
#include "planner/plan/plan.h"

namespace frazil {

// One text per pipeline. Each counts anew: ranks from 0, in the order in which stages 0, 1, ...
// first lie on a device, and micro-batches from 0, in their order. Updates and barriers at the end
// of a device's list are left to the program that calls PyTorch's schedule.
//
// kComputeComms takes a completed schedule. If its order suits PyTorch's p2p, which has no tags, it
// stays as it is; else RECVs move (planner/actions/message_order.h). A stage without a REDUCE_GRAD
// gets one after its last backward: there PyTorch divides gradients by the number of micro-batches.
// No UNSHARD is added, so a model under FSDP needs kComputeOnly.
//
// Throws InfeasibleError naming what PyTorch's format or runtime does not have: recomputing,
// updates inside a step, moves, slices, several micro-batches in one action, messages past a
// neighbour, a device with several pipelines, a stage on several devices or without a backward,
// a last stage whose F are out of order (its losses are looked up by their position).
std::vector<std::string> to_pytorch_csv(const Schedule& schedule, PytorchDialect dialect);

struct PytorchSchedule {
  Schedule schedule;  // pipeline 0, rank r on device r, bubbles left out
  PytorchShape shape;
  PytorchDialect dialect = PytorchDialect::kComputeOnly;
};

enum class LegacyPytorch : std::uint8_t { kRefuse, kConvert };

// Legacy is a file with a BW, or with a W beside a B of the same stage and micro-batch. Throws
// InputError{file, line} for the first thing that is not as PyTorch demands.
PytorchSchedule parse_pytorch_csv(std::string_view text, const std::string& file,
                                  LegacyPytorch legacy = LegacyPytorch::kRefuse);

// The compute actions, for a plan of one pipeline with stage s on device shape.rank_of_stage[s].
// Requires: at least as many devices as ranks.
ExplicitSchedule to_explicit_schedule(const PytorchSchedule& imported, int devices);

}  // namespace frazil
