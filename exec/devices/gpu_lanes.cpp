#include "exec/devices/gpu_lanes.h"

#include <chrono>

#include "exec/devices/steady_time.h"

namespace frazil {
namespace {

// Threads that ask a driver without a pause keep others from giving it work.
constexpr auto kBetweenQuestions = std::chrono::microseconds(5);

}  // namespace

DeviceEvent GpuLanes::record(DeviceLane lane, bool is_timed) const {
  return {table_, table_.record(stream(lane), is_timed)};
}

void GpuLanes::await(DeviceLane lane, const DeviceEvent& event) const {
  if (event) table_.await(stream(lane), event.handle());
}

void GpuLanes::wait_for(const DeviceEvent& event) const {
  wait_.until([&] {
    if (event.has_passed()) return true;
    const SteadyTime next = std::chrono::steady_clock::now() + kBetweenQuestions;
    while (std::chrono::steady_clock::now() < next) {
    }
    return false;
  });
}

DeviceEvent GpuLanes::hand_over() const {
  await(DeviceLane::kSend, record(DeviceLane::kCompute));
  return record(DeviceLane::kSend);
}

void GpuLanes::receive(Tensors& tensors, const DeviceEvent& ready) const {
  await(DeviceLane::kReceive, ready);
  for (at::Tensor& tensor : tensors) {
    if (tensor.device() != place_) {
      if (tensor.is_cpu()) continue;
      tensor = table_.fetch(stream(DeviceLane::kReceive), tensor);
    }
    table_.mark(stream(DeviceLane::kCompute), tensor);
  }
  await(DeviceLane::kCompute, record(DeviceLane::kReceive));
}

// The copies are made on the lane of what comes, so that they need not wait for the work before
// them.
Tensors GpuLanes::upload(const Tensors& tensors) const {
  Tensors here;
  for (const at::Tensor& tensor : tensors) {
    here.push_back(table_.upload(stream(DeviceLane::kReceive), tensor));
    table_.mark(stream(DeviceLane::kCompute), here.back());
  }
  await(DeviceLane::kCompute, record(DeviceLane::kReceive));
  return here;
}

at::Tensor GpuLanes::download(const at::Tensor& tensor) const {
  return table_.download(stream(DeviceLane::kCompute), tensor);
}

}  // namespace frazil
