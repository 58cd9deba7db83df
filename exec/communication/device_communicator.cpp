#include "exec/communication/device_communicator.h"

#include <utility>

namespace frazil {
namespace {

class DeviceCommunicator final : public Communicator {
 public:
  DeviceCommunicator(std::unique_ptr<Communicator> world, const ComputeDevice& device)
      : world_(std::move(world)), device_(device) {}

  int rank() const override { return world_->rank(); }
  int size() const override { return world_->size(); }

  // Streams know nothing of each other, and the receiver may read at once: so the device finishes
  // its work first.
  void send(int peer, const Tag& tag, Tensors tensors) override {
    device_.finish();
    world_->send(peer, tag, std::move(tensors));
  }

  Tensors receive(int peer, const Tag& tag) override {
    Tensors tensors = world_->receive(peer, tag);
    device_.receive(tensors);
    return tensors;
  }

  void barrier() override { world_->barrier(); }
  void check() override { world_->check(); }
  bool sum_in_group(const at::Tensor& flat, const std::vector<int>& group,
                    const Tag& tag) override {
    return world_->sum_in_group(flat, group, tag);
  }
  void abort(const std::string& reason) override { world_->abort(reason); }
  void finish() override { world_->finish(); }
  void leave() override { world_->leave(); }

 private:
  std::unique_ptr<Communicator> world_;
  ComputeDevice device_;
};

}  // namespace

std::unique_ptr<Communicator> on_device(std::unique_ptr<Communicator> communicator,
                                        const ComputeDevice& device) {
  if (!device.is_gpu()) return communicator;
  return std::make_unique<DeviceCommunicator>(std::move(communicator), device);
}

}  // namespace frazil
