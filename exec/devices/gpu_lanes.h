#pragma once
// The lanes of a device on a GPU that the host runs ahead of: a stream for its work, one for the
// messages that leave, one for what comes. The host enqueues and goes on; events order the lanes,
// and the devices. Nothing here waits but wait_for().

#include <ATen/core/Tensor.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "exec/devices/accelerator.h"
#include "exec/devices/device_event.h"
#include "exec/devices/gpu_wait.h"
#include "exec/tensors/tensors.h"

namespace frazil {

enum class DeviceLane { kCompute, kSend, kReceive };
inline constexpr std::size_t kDeviceLanes = 3;

// Calls come from the device's own thread, which works on the first lane's stream.
class GpuLanes {
 public:
  using Streams = std::array<StreamHandle, kDeviceLanes>;  // by lane

  // `table` and `wait` must outlive the lanes and their events. The streams stay their owner's.
  GpuLanes(const AcceleratorTable& table, const Streams& streams, const GpuWait& wait)
      : table_(table), streams_(streams), wait_(wait), place_(table.place(streams[0])) {}

  // Records a point in the work of a lane.
  DeviceEvent record(DeviceLane lane, bool is_timed = false) const;
  // What the lane is given from here on begins after the event.
  void await(DeviceLane lane, const DeviceEvent& event) const;
  // Returns when the event has passed. Throws as ComputeDevice::finish().
  void wait_for(const DeviceEvent& event) const;

  // Returns the point from which others may read what the device has made up to here.
  DeviceEvent hand_over() const;
  // Lets the device's further work read these tensors from `ready` on, and keeps their memory until
  // it has. Tensors on another GPU are copied to this one; host tensors stay where they are.
  void receive(Tensors& tensors, const DeviceEvent& ready) const;

  // Copies tensors from the host, beside the device's work; its further work may read the copies,
  // and the host may write to `tensors`.
  Tensors upload(const Tensors& tensors) const;
  // Returns a copy on the host, which may be read once the device's work has come there.
  at::Tensor download(const at::Tensor& tensor) const;

  // Name what the calling thread enqueues between the two calls, for profilers.
  void begin_range(const std::string& text) const { table_.begin_range(text.c_str()); }
  void end_range() const { table_.end_range(); }

 private:
  StreamHandle stream(DeviceLane lane) const { return streams_[static_cast<std::size_t>(lane)]; }

  const AcceleratorTable& table_;
  Streams streams_;
  const GpuWait& wait_;
  at::Device place_;
};

}  // namespace frazil
