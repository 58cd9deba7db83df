#pragma once
// How the host waits for a GPU: it asks until the GPU is done. A world that is abandoned and a GPU
// that never answers end the asking.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "exec/devices/step_fault.h"
#include "exec/devices/tick_count.h"
#include "profiles/quantity_text.h"
#include "profiles/units.h"

namespace frazil {

struct GpuWait {
  int gpu = 0;
  int device = 0;  // of the run
  Duration deadline{0};
  const std::atomic<bool>* abandoned = nullptr;

  // Returns when `is_done` says so. Throws DeviceLost at the deadline, PeerLost in an abandoned
  // world, and what `is_done` throws.
  template <class IsDone>
  void until(const IsDone& is_done) const {
    if (is_done()) return;
    TickCount waited(deadline, TickCount::Busy::kCounted);
    while (!is_done()) {
      if (abandoned->load(std::memory_order_relaxed)) {
        throw PeerLost("device " + std::to_string(device) + " stops, for another one has failed");
      }
      if (waited.is_over()) {
        throw DeviceLost("device " + std::to_string(device) + " has not done its work on GPU " +
                         std::to_string(gpu) + " within " + to_text(deadline));
      }
      std::this_thread::yield();
    }
  }
};

}  // namespace frazil
