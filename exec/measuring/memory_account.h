#pragma once
// The memory of one device in one step, as the simulator counts it (planner/lowering/footprint.h),
// but measured: logical bytes by kind over time. Gradients are reserved: what the trees of a layer
// have needed at most stays reserved to the end of the step.

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "profiles/units.h"
#include "sim/memory.h"
#include "sim/task_graph.h"

namespace frazil {

struct MeasuredMemory {
  DeviceId device;
  std::array<Bytes, kMemoryKinds> peak;  // of each kind by itself
  Bytes total_peak;
  // What libtorch's CPU allocator handed out in the device's thread: parameters and moments as the
  // step began, and the most that the thread had allocated since and nobody freed, in whatever
  // thread. A message counts where it was made, until its receiver lets go of it.
  Bytes allocator_peak;
  std::vector<MemoryMoment> curve;  // of the total, from the step's beginning
};

class MemoryAccount {
 public:
  using Clock = std::chrono::steady_clock;

  // Begins a step that starts with these bytes; until then nothing is counted.
  void begin(DeviceId device, Bytes parameters, Bytes optimizer);
  bool is_open() const { return is_open_; }
  void change(MemoryKind kind, std::int64_t bytes);
  // A layer's gradients take so much at this moment.
  void reserve_gradients(LayerId layer, Bytes bytes);
  Bytes reserved_gradients(LayerId layer) const {
    const auto found = reserved_.find(layer);
    return found == reserved_.end() ? Bytes{} : Bytes{found->second};
  }
  // Ends the step.
  MeasuredMemory take();

 private:
  bool is_open_ = false;
  Clock::time_point start_;
  std::array<std::int64_t, kMemoryKinds> held_{};
  std::map<LayerId, std::int64_t> reserved_;
  MeasuredMemory measured_;
};

}  // namespace frazil
