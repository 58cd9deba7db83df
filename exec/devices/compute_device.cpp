#include "exec/devices/compute_device.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <set>
#include <thread>

#include "exec/devices/load_accelerator.h"
#include "exec/devices/numerics.h"
#include "exec/state/layer_state.h"
#include "exec/tensors/samples.h"
#include "profiles/error.h"

namespace frazil {

struct ComputeDevice::Gpu {
  ~Gpu() {
    for (const StreamHandle stream : streams) {
      if (stream != nullptr) table->close(stream);
    }
  }

  const AcceleratorTable* table = nullptr;
  GpuWait wait;
  int share = 0;  // of the GPU
  int shares = 1;
  mutable std::atomic<std::int64_t> host_waits{0};
  GpuLanes::Streams streams{};  // the first alone if the host waits
  std::optional<GpuLanes> lanes;

  StreamHandle stream() const { return streams.front(); }
};

namespace {

[[noreturn]] void refuse(const std::string& found) {
  throw InputError("--device cuda", 0, found, "a GPU with a driver for CUDA 13, or --device cpu");
}

const AcceleratorTable& open_plugin(const DeviceChoice& choice) {
  return load_accelerator(choice.plugin.empty() ? default_plugin() : choice.plugin);
}

// Returns the GPUs of the choice, each checked to be there.
std::vector<int> find_gpus(const DeviceChoice& choice, const AcceleratorTable& table) {
  int there = 0;
  try {
    there = table.count_gpus();
  } catch (const std::exception& error) {
    refuse("no working driver (" + to_one_line(error.what()) + ")");
  }
  if (there == 0) refuse("no GPU");
  std::vector<int> gpus = choice.gpus;
  if (gpus.empty()) {
    for (int gpu = 0; gpu < there; ++gpu) gpus.push_back(gpu);
  }
  for (const int gpu : gpus) {
    if (gpu < 0 || gpu >= there) {
      throw InputError("--device cuda", 0, "GPU " + std::to_string(gpu),
                       "one of the " + std::to_string(there) + " that are here, counted from 0");
    }
  }
  return gpus;
}

}  // namespace

int ComputeDevice::gpu() const { return gpu_->wait.gpu; }

void ComputeDevice::enter() const {
  if (is_gpu()) gpu_->table->enter(gpu_->stream());
}

void ComputeDevice::wait() const {
  count_wait();
  gpu_->wait.until([this] { return gpu_->table->is_idle(gpu_->stream()); });
}

std::int64_t ComputeDevice::host_waits() const { return is_gpu() ? gpu_->host_waits.load() : 0; }

void ComputeDevice::count_wait() const {
  if (is_gpu()) gpu_->host_waits.fetch_add(1, std::memory_order_relaxed);
}

void ComputeDevice::receive(Tensors& tensors) const {
  if (!is_gpu()) return;
  Tensors left;
  for (at::Tensor& tensor : tensors) {
    if (tensor.device() == place_) {
      gpu_->table->mark(gpu_->stream(), tensor);
    } else if (!tensor.is_cpu()) {
      left.push_back(tensor);
      tensor = tensor.to(place_);
    }
  }
  // The memory of these tensors belongs to another stream, which may use it again as soon as they
  // are let go.
  if (!left.empty()) wait();
}

std::unique_ptr<const Samples> ComputeDevice::bring(const Samples& samples) const {
  if (!is_gpu()) return nullptr;
  auto brought = std::make_unique<Samples>();
  for (const at::Tensor& input : samples.inputs) brought->inputs.push_back(input.to(place_));
  brought->labels = samples.labels.to(place_);
  return brought;
}

std::unique_ptr<const Samples> ComputeDevice::upload(const Samples& samples) const {
  if (lanes_ == nullptr) return bring(samples);
  Tensors all = samples.inputs;
  all.push_back(samples.labels);
  auto here = std::make_unique<Samples>();
  here->inputs = lanes_->upload(all);
  here->labels = std::move(here->inputs.back());
  here->inputs.pop_back();
  return here;
}

at::Tensor ComputeDevice::upload(const at::Tensor& tensor) const {
  return lanes_ == nullptr ? tensor.to(place_) : lanes_->upload({tensor}).front();
}

void ComputeDevice::adopt(LayerState& state) const {
  if (!is_gpu()) return;
  adopt(state.parameters);
  adopt(state.first_moment);
  adopt(state.second_moment);
  adopt(state.gradient_sums);
  adopt(state.statistics);
}

void ComputeDevice::adopt(Tensors& tensors) const {
  for (at::Tensor& tensor : tensors) {
    if (tensor.device() == place_) {
      gpu_->table->mark(gpu_->stream(), tensor);
    } else {
      const bool is_active = tensor.requires_grad();
      tensor = tensor.detach().to(place_).set_requires_grad(is_active);
    }
  }
}

ComputeDevices::ComputeDevices(const DeviceChoice& choice, int devices, Duration deadline) {
  devices_.resize(static_cast<std::size_t>(devices));
  if (choice.kind == DeviceKind::kCpu) return;
  const AcceleratorTable& table = open_plugin(choice);
  const std::vector<int> gpus = find_gpus(choice, table);
  prepare_gpu_numerics();
  const int count = static_cast<int>(gpus.size());
  for (int d = 0; d < devices; ++d) {
    const int place = d % count;
    const int shares = choice.splits ? divide_up(devices - place, count) : 1;
    const int gpu = gpus[static_cast<std::size_t>((choice.first + d) % count)];
    auto made = std::make_unique<ComputeDevice::Gpu>();
    made->table = &table;
    made->wait = {.gpu = gpu, .device = d, .deadline = deadline, .abandoned = &abandoned_};
    made->share = choice.splits ? d / count : 0;
    made->shares = shares;
    made->streams.front() = table.open(gpu, made->share, shares);
    const Bytes memory{table.describe(gpu).memory_bytes / divide_up(devices - place, count)};
    memory_per_device_ = d == 0 ? memory : std::min(memory_per_device_, memory);
    ComputeDevice& device = devices_[static_cast<std::size_t>(d)];
    device.place_ = table.place(made->stream());
    device.gpu_ = made.get();
    streams_.push_back(std::move(made));
  }
  if (!choice.waits) open_lanes();
}

// The lanes beside a device's work have the same part of the GPU.
void ComputeDevices::open_lanes() {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    ComputeDevice::Gpu& gpu = *streams_[d];
    for (std::size_t lane = 1; lane < kDeviceLanes; ++lane) {
      gpu.streams[lane] = gpu.table->open(gpu.wait.gpu, gpu.share, gpu.shares);
    }
    devices_[d].lanes_ = &gpu.lanes.emplace(*gpu.table, gpu.streams, gpu.wait);
  }
}

ComputeDevices::~ComputeDevices() = default;

void ComputeDevices::limit_waits(Duration deadline) {
  for (const auto& gpu : streams_) gpu->wait.deadline = deadline;
}

void ComputeDevices::abandon() { abandoned_.store(true); }

bool ComputeDevices::renew() { return abandoned_.exchange(false); }

void ComputeDevices::settle() const {
  std::set<int> settled;
  for (const auto& gpu : streams_) {
    const int index = gpu->wait.gpu;
    if (!settled.insert(index).second) continue;
    gpu->wait.until([&] { return gpu->table->is_settled(index); });
  }
}

std::string ComputeDevices::text() const {
  const std::string count = std::to_string(devices_.size());
  if (streams_.empty()) return count + (devices_.size() == 1 ? " core" : " cores");
  const ComputeDevice::Gpu& first = *streams_.front();
  return count + (devices_.size() == 1 ? " stream of " : " streams of ") +
         first.table->describe(first.wait.gpu).name + " (" + first.table->part(first.stream()) +
         ")";
}

Bytes ComputeDevices::memory_per_device() const { return memory_per_device_; }

void check_devices(const DeviceChoice& choice) {
  if (choice.kind == DeviceKind::kCuda) (void)find_gpus(choice, open_plugin(choice));
}

int count_devices(const DeviceChoice& choice) {
  if (choice.kind == DeviceKind::kCpu) {
    return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  return static_cast<int>(find_gpus(choice, open_plugin(choice)).size());
}

}  // namespace frazil
