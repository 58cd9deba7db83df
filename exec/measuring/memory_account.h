#pragma once
// MemoryAccount measures the memory of one device in one step as the simulator counts it
// (planner/lowering/footprint.h): logical bytes by kind over time. Gradients are reserved: the peak
// that the gradient trees of a layer have needed stays reserved to the end of the step.

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
  // The peak of what libtorch's allocators handed out in the device's thread: parameters and
  // moments as the step began, plus the most that the thread had allocated since and no thread had
  // freed. A message counts on the device that made it, until its receiver lets go of it.
  Bytes allocator_peak;
  std::vector<MemoryMoment> curve;  // of the total, from the step's beginning
};

class MemoryAccount {
 public:
  using Clock = std::chrono::steady_clock;

  // Begins a step that starts with these bytes of parameters and optimizer state. Changes are
  // counted from here to take() only.
  void begin(DeviceId device, Bytes parameters, Bytes optimizer);
  bool is_open() const { return is_open_; }
  // Adds bytes to what is held of a kind, or takes them off if `bytes` is negative.
  void change(MemoryKind kind, std::int64_t bytes);
  // Notes that the gradients of a layer take this many bytes at this moment; their peak stays
  // reserved.
  void reserve_gradients(LayerId layer, Bytes bytes);
  Bytes reserved_gradients(LayerId layer) const {
    const auto found = reserved_.find(layer);
    return found == reserved_.end() ? Bytes{} : Bytes{found->second};
  }
  // Ends the step and returns what was measured.
  MeasuredMemory take();

 private:
  bool is_open_ = false;
  Clock::time_point start_;
  std::array<std::int64_t, kMemoryKinds> held_{};
  std::map<LayerId, std::int64_t> reserved_;
  MeasuredMemory measured_;
};

}  // namespace frazil
