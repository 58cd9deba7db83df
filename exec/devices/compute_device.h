#pragma once
// What a device of a run is: a CPU core, or a stream of a GPU. The only place that knows which:
// where its tensors live, how a thread begins to work for it, when its work is done, how tensors
// come to it. Of a core all that is nothing, behind one branch.

#include <ATen/core/Tensor.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "exec/devices/accelerator.h"
#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

struct LayerState;
struct Samples;

enum class DeviceKind { kCpu, kCuda };

struct DeviceChoice {
  DeviceKind kind = DeviceKind::kCpu;
  std::vector<int> gpus = {};  // the devices take them in turn; empty: all that there are
  // Streams of one GPU get parts of it that do not overlap, where it can be split; else each may
  // use all of it.
  bool splits = true;
  std::filesystem::path plugin = {};  // empty: that of this build
};

// A handle; ComputeDevices owns what it names. Calls come from the device's own thread, but those
// that say otherwise.
class ComputeDevice {
 public:
  ComputeDevice() = default;  // a core

  bool is_gpu() const { return gpu_ != nullptr; }
  at::Device place() const { return place_; }
  // The calling thread works for this device from now on; once per thread.
  void enter() const;
  // Returns when the device has done what it was given. Throws PeerLost when that takes longer than
  // the deadline or the world is abandoned meanwhile, and the GPU's own error.
  void finish() const {
    if (is_gpu()) wait();
  }
  // Tensors that other devices have made and done with; on another GPU they are copied here, host
  // tensors stay where they are.
  void receive(Tensors& tensors) const;
  // A copy where this device's tensors live; none of a core, which reads them where they are.
  std::unique_ptr<const Samples> bring(const Samples& samples) const;
  // The state of a layer that this device holds from now on. From any thread; see settle().
  void adopt(LayerState& state) const;

 private:
  friend class ComputeDevices;
  struct Gpu;

  void wait() const;
  void adopt(Tensors& tensors) const;

  at::Device place_{at::kCPU};
  const Gpu* gpu_ = nullptr;
};

class ComputeDevices {
 public:
  // `deadline` of a single wait. Throws InputError saying what lacks: the plug-in, a driver, a GPU.
  // Makes the process's kernels deterministic where the devices are GPUs (exec/devices/numerics.h).
  ComputeDevices(const DeviceChoice& choice, int devices,
                 Duration deadline = std::chrono::minutes(10));
  ~ComputeDevices();
  ComputeDevices(const ComputeDevices&) = delete;
  ComputeDevices& operator=(const ComputeDevices&) = delete;

  int count() const { return static_cast<int>(devices_.size()); }
  const ComputeDevice& operator[](std::size_t device) const { return devices_[device]; }
  // Every wait for a GPU ends, from any thread.
  void abandon();
  // Between steps, from the thread that drives them: what it has given GPUs is done.
  void settle() const;
  // "2 cores"; "2 streams of NVIDIA H100 80GB HBM3 (64 SMs each)".
  std::string text() const;
  // Of the GPU with the least, over its streams; 0 of cores.
  Bytes memory_per_device() const;

 private:
  std::atomic<bool> abandoned_ = false;
  std::vector<std::unique_ptr<ComputeDevice::Gpu>> streams_;
  std::vector<ComputeDevice> devices_;
  Bytes memory_per_device_;
};

// Throws what ComputeDevices would, and makes nothing.
void check_devices(const DeviceChoice& choice);
// How many devices a choice offers by itself: one per core, or one per GPU.
int count_devices(const DeviceChoice& choice);

}  // namespace frazil
