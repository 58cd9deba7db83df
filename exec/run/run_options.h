#pragma once
// What a run is made with, beside its model.

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/communication/nccl_table.h"
#include "exec/devices/compute_device.h"
#include "planner/actions/message_order.h"
#include "profiles/units.h"

namespace frazil {

struct RunOptions {
  MessageOrder order = MessageOrder::kByTag;
  // The longest single wait for a message or a GPU. A step also fails if no device ends an action
  // within this time, but at least within a second.
  Duration deadline = std::chrono::minutes(10);
  // Take the limit of exec/run/step_deadline.h in place of `deadline`.
  bool predicts_deadline = false;
  DeviceChoice devices = {};
};

// The place of one process among those of a run.
struct PoolPlace {
  int devices = 1;                   // of the whole run
  DeviceId first{0};                 // device of this process
  int count = 1;                     // devices of this process
  std::vector<int> process_of = {};  // by device; empty: all are in this process
  // False: the devices of all processes of this machine share its cores.
  bool has_core_per_rank = true;
  // Carries tensors between GPUs of different processes, in the order in which they are sent; null:
  // they go through the host. Outlives the process's threads.
  const NcclTable* nccl = nullptr;

  // Returns the number of this process in the run.
  int process() const { return process_of.empty() ? 0 : process_of.at(first.index()); }
  bool is_here(DeviceId device) const {
    return device >= first && device.value < first.value + count;
  }
};

}  // namespace frazil
