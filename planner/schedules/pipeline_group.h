#pragma once
// Turns pipelines of a plan into the numbers that a schedule generator sees, and keeps which
// devices and micro-batches these numbers stand for. One run of a generator serves one pipeline, or
// two for a schedule that runs both ways.

#include <vector>

#include "planner/orders/device_order.h"
#include "planner/orders/shared_orders.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule_facts.h"

namespace frazil {

struct PipelineGroup {
  PipelineId first;
  std::vector<DeviceId> devices;                 // by the generator's devices 0..p-1
  std::vector<std::vector<MicroBatchId>> owned;  // by direction
  OrderProblem problem;                          // without times
};

// Reads the one or two pipelines from `first` on. Throws InfeasibleError if the plan's stages,
// chunks, depth or shares of micro-batches are not those of the schedule.
PipelineGroup read_group(const Plan& plan, PipelineId first, const ScheduleFacts& facts);

// Returns the devices of a pipeline, each once, in the order of its stages.
std::vector<DeviceId> devices_in_order(const Pipeline& pipeline);

// Reads one pipeline, wherever its stages lie. Throws InfeasibleError if the schedule does not take
// the plan's depth.
PipelineGroup read_any_placement(const Plan& plan, PipelineId id);
// Returns the places of each stage as indices into `devices`.
std::vector<StagePlaces> places_of_stages(const Pipeline& pipeline,
                                          const std::vector<DeviceId>& devices);

}  // namespace frazil
