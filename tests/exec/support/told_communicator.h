#pragma once
// A rank that says what it sends and receives, to a test that wants to end a process there.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "exec/communication/communicator.h"

namespace frazil {

class ToldCommunicator final : public Communicator {
 public:
  enum class Moment { kBeforeSend, kAfterSend, kBeforeReceive, kAfterReceive };
  using Tell = std::function<void(int rank, const Tag&, Moment)>;

  ToldCommunicator(std::unique_ptr<Communicator> host, Tell tell)
      : host_(std::move(host)), tell_(std::move(tell)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  void send(int peer, const Tag& tag, Tensors tensors) override {
    tell_(rank(), tag, Moment::kBeforeSend);
    host_->send(peer, tag, std::move(tensors));
    tell_(rank(), tag, Moment::kAfterSend);
  }
  Tensors receive(int peer, const Tag& tag) override {
    tell_(rank(), tag, Moment::kBeforeReceive);
    Tensors tensors = host_->receive(peer, tag);
    tell_(rank(), tag, Moment::kAfterReceive);
    return tensors;
  }
  void barrier() override { host_->barrier(); }
  void check() override { host_->check(); }
  bool sum_in_group(const at::Tensor& flat, const std::vector<int>& group,
                    const Tag& tag) override {
    return host_->sum_in_group(flat, group, tag);
  }
  void abort(const std::string& reason) override { host_->abort(reason); }
  void finish() override { host_->finish(); }
  void leave() override { host_->leave(); }

 private:
  std::unique_ptr<Communicator> host_;
  Tell tell_;
};

}  // namespace frazil
