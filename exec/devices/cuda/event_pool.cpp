#include "exec/devices/cuda/event_pool.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

namespace frazil {

GpuEvent* EventPool::take(int gpu, bool is_timed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<GpuEvent*>& there = free_[{gpu, is_timed}];
  if (!there.empty()) {
    GpuEvent* const event = there.back();
    there.pop_back();
    return event;
  }
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(gpu));
  GpuEvent made{.gpu = gpu, .is_timed = is_timed};
  C10_CUDA_CHECK(
      cudaEventCreateWithFlags(&made.event, is_timed ? cudaEventDefault : cudaEventDisableTiming));
  return &all_.emplace_back(made);
}

void EventPool::give_back(GpuEvent* event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_[{event->gpu, event->is_timed}].push_back(event);
}

}  // namespace frazil
