#pragma once
// Writes and reads schedules as the CSV of torch.distributed.pipelining (PyTorch 2.11). There is no
// header; row r lists the actions of rank r, and a cell is an action as in traces/action.h.
// planner/interop/pytorch_rules.h has the two dialects and PyTorch's rules for the rows. Only
// compute_only has empty cells, which are bubbles. Older files are in a third, legacy dialect,
// which writes B for I and BW for B.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/actions/schedule.h"
#include "planner/interop/pytorch_rules.h"
#include "planner/plan/plan.h"

namespace frazil {

// Returns one text per pipeline. Each text numbers ranks from 0, in the order in which stages 0, 1,
// ... first lie on a device, and micro-batches from 0, in their order. Updates and barriers at the
// end of a device's list are left to the program that calls PyTorch's schedule.
//
// kComputeComms takes a completed schedule. The order stays if it suits PyTorch's p2p, which has no
// tags; else RECVs change places (planner/actions/message_order.h). A stage without a REDUCE_GRAD
// gets one after its last backward, where PyTorch divides gradients by the number of micro-batches.
// No UNSHARD is added, so a model under FSDP needs kComputeOnly.
//
// Throws InfeasibleError naming what PyTorch's format or runtime does not have: recompute
// (activation checkpointing) as an action, updates inside a step, MOVE actions, slices, several
// micro-batches in one action, messages past a neighbour, a device with several pipelines, a stage
// on several devices or without a backward, a last stage whose F are out of order (PyTorch looks up
// losses by their position).
std::vector<std::string> to_pytorch_csv(const Schedule& schedule, PytorchDialect dialect);

struct PytorchSchedule {
  Schedule schedule;  // pipeline 0, rank r on device r, bubbles left out
  PytorchShape shape;
  PytorchDialect dialect = PytorchDialect::kComputeOnly;
};

enum class LegacyPytorch : std::uint8_t { kRefuse, kConvert };

// Reads a schedule. A file is legacy if it has a BW, or a W beside a B of the same stage and
// micro-batch. Throws InputError{file, line} for the first thing that breaks PyTorch's rules.
PytorchSchedule parse_pytorch_csv(std::string_view text, const std::string& file,
                                  LegacyPytorch legacy = LegacyPytorch::kRefuse);

// Returns the compute actions by device, for a plan of one pipeline with rank r on device
// device_of_rank[r]. Requires: a device of its own, below `devices`, for every rank.
ExplicitSchedule to_explicit_schedule(const PytorchSchedule& imported,
                                      const std::vector<DeviceId>& device_of_rank, int devices);
// The same with rank r on device r.
ExplicitSchedule to_explicit_schedule(const PytorchSchedule& imported, int devices);

}  // namespace frazil
