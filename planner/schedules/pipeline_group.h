#pragma once
// From a plan to what a generator sees: the pipelines that one run of it serves (one, or two for a
// schedule that runs both ways), as numbers, and who those numbers are in the plan.

#include <vector>

#include "planner/orders/device_order.h"
#include "planner/orders/shared_orders.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule_facts.h"

namespace frazil {

struct PipelineGroup {
  PipelineId first;
  std::vector<DeviceId> devices;                 // of the generator's devices 0..p-1
  std::vector<std::vector<MicroBatchId>> owned;  // by direction
  OrderProblem problem;                          // without times
};

// Throws InfeasibleError where the plan's stages, chunks, depth or shares are not the schedule's.
PipelineGroup read_group(const Plan& plan, PipelineId first, const ScheduleFacts& facts);

// The devices of a pipeline, each once, in the order in which its data meets them.
std::vector<DeviceId> devices_in_order(const Pipeline& pipeline);

// The group of one pipeline whatever its stages, and the devices (0..p-1) of each.
PipelineGroup read_any_placement(const Plan& plan, PipelineId id);
std::vector<StagePlaces> places_of_stages(const Pipeline& pipeline,
                                          const std::vector<DeviceId>& devices);

}  // namespace frazil
