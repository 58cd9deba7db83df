#pragma once
// A device of a run is a CPU core or a stream of a GPU. No other code knows which: where the
// device's tensors live, how a thread begins to work for it, when its work is done, how tensors
// come to it. For a core each of these does nothing, behind one branch.

#include <ATen/core/Tensor.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "exec/devices/accelerator.h"
#include "exec/devices/gpu_lanes.h"
#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

struct LayerState;
struct Samples;

enum class DeviceKind { kCpu, kCuda };

struct DeviceChoice {
  DeviceKind kind = DeviceKind::kCpu;
  std::vector<int> gpus = {};  // a run's devices take these in turn; empty: all GPUs
  int first = 0;               // number in the run of this process's first device
  // Gives streams of one GPU parts of it that do not overlap, if it can be split; otherwise each
  // stream may use all of it.
  bool splits = true;
  // The host waits for a GPU after every action, for comparison. Otherwise it runs ahead of GPUs.
  bool waits = false;
  std::filesystem::path plugin = {};  // empty: the plug-in of this build
};

// A handle; ComputeDevices owns what it names. Calls come from the device's own thread, except
// where a function says otherwise.
class ComputeDevice {
 public:
  ComputeDevice() = default;  // a core

  bool is_gpu() const { return gpu_ != nullptr; }
  // Returns the number of its GPU. Requires: is_gpu().
  int gpu() const;
  at::Device place() const { return place_; }
  // Returns the lanes of a device that the host runs ahead of; null for a core and for a device
  // that the host waits for.
  const GpuLanes* lanes() const { return lanes_; }
  // The calling thread works for this device from here on; called once per thread.
  void enter() const;
  // Returns when the device has done what it was given. Throws PeerLost if that takes longer than
  // the deadline or the world is abandoned meanwhile, and the GPU's own error.
  void finish() const {
    if (is_gpu()) wait();
  }
  // Takes tensors that other devices have made and finished, for a device that the host waits for.
  // Tensors on another GPU are copied to this one; host tensors stay where they are.
  void receive(Tensors& tensors) const;
  // Returns a copy where this device's tensors live; none for a core, which reads the samples where
  // they are.
  std::unique_ptr<const Samples> bring(const Samples& samples) const;
  // Do as bring(), in the order of the device's work if the host runs ahead of it. For the device's
  // own thread.
  std::unique_ptr<const Samples> upload(const Samples& samples) const;
  at::Tensor upload(const at::Tensor& tensor) const;
  // How often the host has waited for this device so far.
  std::int64_t host_waits() const;
  void count_wait() const;
  // Takes over the state of a layer that this device holds from here on. May be called from any
  // thread; see settle().
  void adopt(LayerState& state) const;

 private:
  friend class ComputeDevices;
  struct Gpu;

  void wait() const;
  void adopt(Tensors& tensors) const;

  at::Device place_{at::kCPU};
  const Gpu* gpu_ = nullptr;
  const GpuLanes* lanes_ = nullptr;
};

class ComputeDevices {
 public:
  // `deadline` limits a single wait. Throws InputError saying what lacks: the plug-in, a driver, a
  // GPU. Makes the process's kernels deterministic if the devices are GPUs
  // (exec/devices/numerics.h).
  ComputeDevices(const DeviceChoice& choice, int devices,
                 Duration deadline = std::chrono::minutes(10));
  ~ComputeDevices();
  ComputeDevices(const ComputeDevices&) = delete;
  ComputeDevices& operator=(const ComputeDevices&) = delete;

  int count() const { return static_cast<int>(devices_.size()); }
  // Gives every single wait for a GPU another limit. Requires: nobody waits.
  void limit_waits(Duration deadline);
  const ComputeDevice& operator[](std::size_t device) const { return devices_[device]; }
  // Ends every wait for a GPU, and those that begin before renew(); may be called from any thread.
  void abandon();
  // Lets the devices be waited for again, in a new world. Returns true if they had been abandoned:
  // what they were given before may still be under way. Requires: nobody waits.
  bool renew();
  // Returns when GPUs have done what the calling thread has given them. It is called between steps,
  // by the thread that drives them.
  void settle() const;
  // Returns "2 cores" or "2 streams of NVIDIA H100 80GB HBM3 (64 SMs each)".
  std::string text() const;
  // Returns a GPU's memory over the number of its streams, the least of all GPUs; 0 for cores.
  Bytes memory_per_device() const;

 private:
  void open_lanes();

  std::atomic<bool> abandoned_ = false;
  std::vector<std::unique_ptr<ComputeDevice::Gpu>> streams_;
  std::vector<ComputeDevice> devices_;
  Bytes memory_per_device_;
};

// Throws what ComputeDevices would, and makes nothing.
void check_devices(const DeviceChoice& choice);
// Returns how many devices a choice offers by itself: one per core, or one per GPU.
int count_devices(const DeviceChoice& choice);

}  // namespace frazil
