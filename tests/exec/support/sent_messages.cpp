#include "tests/exec/support/sent_messages.h"

#include <memory>

#include "exec/communication/in_process_communicator.h"
#include "exec/devices/workers.h"
#include "exec/run/executor.h"

namespace frazil {
namespace {

constexpr std::uint64_t kTrafficSeed = 7;

// Notes what its rank hands over, and hands it on.
class CountingCommunicator final : public Communicator {
 public:
  explicit CountingCommunicator(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void send(int peer, const Tag& tag, Tensors tensors) override {
    Sent noted{peer, tag, 0};
    for (const at::Tensor& tensor : tensors) {
      noted.bytes += static_cast<std::int64_t>(tensor.nbytes());
    }
    sent.push_back(noted);
    inner_->send(peer, tag, std::move(tensors));
  }
  Tensors receive(int peer, const Tag& tag) override { return inner_->receive(peer, tag); }
  void barrier() override { inner_->barrier(); }
  void abort(const std::string& reason) override { inner_->abort(reason); }
  void finish() override { inner_->finish(); }
  void leave() override { inner_->leave(); }

  std::vector<Sent> sent;

 private:
  std::unique_ptr<Communicator> inner_;
};

std::vector<DeviceState> make_states(const ModelSpec& model, const StepProgram& program,
                                     int devices) {
  std::vector<DeviceState> states(static_cast<std::size_t>(devices));
  for (std::size_t l = 0; l < program.topology.owners.size(); ++l) {
    for (const LayerOwner& owner : program.topology.owners[l]) {
      LayerState& state = states[owner.device.index()][LayerId{l}];
      state = make_initial_state(model, LayerId{l}, kTrafficSeed);
      set_active(state, program.activity.layers[l].active);
    }
  }
  return states;
}

}  // namespace

AllSent send_step(const TestModel& model, const StepProgram& program, int devices, bool clip) {
  const OptimizerConfig optimizer = clip ? clipped_adamw() : momentum_sgd();
  const Measurement measurement;
  std::vector<DeviceState> states = make_states(model.spec, program, devices);
  std::vector<std::unique_ptr<CountingCommunicator>> communicators;
  for (auto& inner : make_in_process_communicators(devices, {.check_order = false})) {
    communicators.push_back(std::make_unique<CountingCommunicator>(std::move(inner)));
  }
  std::vector<Recorder> recorders;
  std::vector<std::unique_ptr<Executor>> executors;
  for (int d = 0; d < devices; ++d) recorders.emplace_back(DeviceId{d}, SteadyTime{});
  for (std::size_t d = 0; d < states.size(); ++d) {
    executors.push_back(std::make_unique<Executor>(
        ExecutionContext{model.spec, optimizer, program, DeviceId{d}, states[d], *communicators[d],
                         recorders[d], measurement}));
  }
  const std::vector<Samples> micro_batches =
      model.samples({.seed = 1, .micro_batches = program.plan.micro_batches()});
  const StepInput input{0, kTrafficSeed, 1e-2, &micro_batches, program.plan.batch_size};
  Workers workers(devices);
  workers.run([&](DeviceId device) { executors[device.index()]->run_step(input); },
              [&](const std::string& reason) { communicators[0]->abort(reason); });
  AllSent sent;
  for (const auto& communicator : communicators) sent.push_back(communicator->sent);
  return sent;
}

void PrintTo(const Traffic& traffic, std::ostream* out) {
  *out << traffic.messages << " messages of " << traffic.bytes << " bytes";
}

DeviceTraffic count_kinds(const AllSent& sent, const std::set<MessageKind>& kinds) {
  DeviceTraffic traffic(sent.size());
  for (std::size_t rank = 0; rank < sent.size(); ++rank) {
    for (const Sent& each : sent[rank]) {
      if (kinds.contains(each.tag.kind)) traffic[rank] += {1, each.bytes};
    }
  }
  return traffic;
}

Traffic count_reductions(const AllSent& sent) {
  Traffic all;
  for (const Traffic& each :
       count_kinds(sent, {MessageKind::kGradientNodes, MessageKind::kGradientSum})) {
    all += each;
  }
  return all;
}

}  // namespace frazil
