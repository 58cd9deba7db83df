#pragma once
// Numbers that a step asks of a device that the host runs ahead of: losses, magnitudes, norms. They
// stay there until the step's end and come to the host in one copy.

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "exec/devices/gpu_lanes.h"
#include "exec/tensors/tensors.h"

namespace frazil {

class UnreadNumbers {
 public:
  using Take = std::function<void(double)>;

  void clear();
  // Adds a tensor of one real number, and who takes it.
  void add(at::Tensor number, Take take);
  // Enqueues the copy.
  void fetch(const GpuLanes& lanes);
  // Hands out all numbers in the order in which they were added. Requires: they were fetched, and
  // the device has done its work since.
  void deliver();

 private:
  Tensors numbers_;
  std::vector<Take> takers_;
  at::Tensor here_;  // on the host
};

}  // namespace frazil
