#include "exec/communication/device_communicator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <utility>

#include "exec/communication/message_events.h"

namespace frazil {
namespace {

// True for what lies on the device at both ends, whatever the message has come through. The counts
// of a layer's state and norms are read on the host.
bool is_of_device(const Tag& tag) {
  return tag.kind == MessageKind::kActivation || tag.kind == MessageKind::kActivationGradient ||
         tag.kind == MessageKind::kGradientNodes || tag.kind == MessageKind::kGradientSum ||
         tag.kind == MessageKind::kTiedSum;
}

bool is_held_elsewhere(const at::Tensor& tensor) {
  return tensor.use_count() > 1 || tensor.storage().use_count() > 1;
}

class DeviceCommunicator final : public Communicator {
 public:
  DeviceCommunicator(std::unique_ptr<Communicator> world, const ComputeDevice& device,
                     std::shared_ptr<MessageEvents> events, bool carries_gpu_tensors)
      : world_(std::move(world)),
        device_(device),
        events_(std::move(events)),
        carries_gpu_tensors_(carries_gpu_tensors) {}

  int rank() const override { return world_->rank(); }
  int size() const override { return world_->size(); }

  void send(int peer, const Tag& tag, Tensors tensors) override {
    if (!events_->has(peer)) {
      device_.finish();
      if (!carries_gpu_tensors_) {
        for (at::Tensor& tensor : tensors) tensor = tensor.cpu();
      }
    } else if (const GpuLanes* const lanes = device_.lanes()) {
      if (tag.kind == MessageKind::kActivationGradient) keep_apart(tensors);
      events_->post(rank(), peer, tag, lanes->hand_over());
    } else {
      // Streams know nothing of each other, and the receiver may read at once.
      device_.finish();
    }
    world_->send(peer, tag, std::move(tensors));
  }

  Tensors receive(int peer, const Tag& tag) override {
    Tensors tensors = world_->receive(peer, tag);
    if (!events_->has(peer)) {
      if (carries_gpu_tensors_) {
        device_.receive(tensors);
      } else if (is_of_device(tag)) {
        for (at::Tensor& tensor : tensors) tensor = device_.upload(tensor);
      }
    } else if (const GpuLanes* const lanes = device_.lanes()) {
      lanes->receive(tensors, events_->take(peer, rank(), tag));
    } else {
      device_.receive(tensors);
    }
    return tensors;
  }

  void barrier() override { world_->barrier(); }
  void check() override { world_->check(); }
  bool sum_in_group(const at::Tensor& flat, const std::vector<int>& group,
                    const Tag& tag) override {
    const auto is_afar = [this](int rank) { return !events_->has(rank); };
    if (!carries_gpu_tensors_ && std::any_of(group.begin(), group.end(), is_afar)) device_.finish();
    return world_->sum_in_group(flat, group, tag);
  }
  void abort(const std::string& reason) override { world_->abort(reason); }
  void finish() override { world_->finish(); }
  void leave() override { world_->leave(); }

 private:
  // Gradients are added in place where the host sees that nobody else holds them. Autograd may hand
  // out one tensor as the gradient of an input and of a parameter; the receiver's host may have let
  // go of the first before its stream has read it, so the two must not share memory.
  static void keep_apart(Tensors& tensors) {
    for (at::Tensor& tensor : tensors) {
      if (is_held_elsewhere(tensor)) tensor = tensor.clone();
    }
  }

  std::unique_ptr<Communicator> world_;
  ComputeDevice device_;
  std::shared_ptr<MessageEvents> events_;
  bool carries_gpu_tensors_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> on_devices(
    std::vector<std::unique_ptr<Communicator>> communicators, const ComputeDevices& devices,
    bool carries_gpu_tensors) {
  if (communicators.empty() || !devices[0].is_gpu()) return communicators;
  std::set<int> ranks;
  for (const auto& communicator : communicators) ranks.insert(communicator->rank());
  const auto events = std::make_shared<MessageEvents>(std::move(ranks));
  for (std::size_t d = 0; d < communicators.size(); ++d) {
    communicators[d] = std::make_unique<DeviceCommunicator>(std::move(communicators[d]), devices[d],
                                                            events, carries_gpu_tensors);
  }
  return communicators;
}

}  // namespace frazil
