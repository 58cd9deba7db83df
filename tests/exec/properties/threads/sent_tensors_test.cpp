// A tensor that is sent may be read where it lies: nobody writes to it afterwards, however late its
// reader.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "exec/communication/in_process_communicator.h"
#include "exec/reduction/gradient_reduction.h"
#include "exec/reduction/ring_reduction.h"
#include "exec/reduction/tied_sums.h"
#include "tests/exec/models/model_plans.h"
#include "tests/exec/support/random_tensors.h"

namespace frazil {
namespace {

// Keeps all that it sends and receives, beside copies made at that moment, and takes its time.
class WatchingCommunicator final : public Communicator {
 public:
  WatchingCommunicator(Communicator& inner, bool is_slow) : inner_(inner), is_slow_(is_slow) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void send(int peer, const Tag& tag, Tensors tensors) override {
    watch(tensors);
    inner_.send(peer, tag, std::move(tensors));
  }
  Tensors receive(int peer, const Tag& tag) override {
    if (is_slow_) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Tensors tensors = inner_.receive(peer, tag);
    watch(tensors);
    return tensors;
  }
  void barrier() override { inner_.barrier(); }
  void abort(const std::string& reason) override { inner_.abort(reason); }
  void finish() override { inner_.finish(); }
  void leave() override { inner_.leave(); }

  std::size_t watched() const { return seen_.size(); }
  bool unchanged() const {
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (!at::equal(seen_[i], copies_[i])) return false;
    }
    return true;
  }

 private:
  void watch(const Tensors& tensors) {
    for (const at::Tensor& tensor : tensors) {
      seen_.push_back(tensor);
      copies_.push_back(tensor.clone());
    }
  }

  Communicator& inner_;
  bool is_slow_;
  Tensors seen_;
  Tensors copies_;
};

// Runs `job` on every rank, one of them slow, and looks at everything that was sent when all are
// through.
void expect_unchanged(int ranks, const std::function<void(Communicator&)>& job) {
  const auto communicators = make_in_process_communicators(ranks);
  std::vector<std::unique_ptr<WatchingCommunicator>> watching(communicators.size());
  run_ranks(communicators, [&](Communicator& self) {
    auto& own = watching[static_cast<std::size_t>(self.rank())];
    own = std::make_unique<WatchingCommunicator>(self, self.rank() == 1);
    job(*own);
  });
  for (const auto& own : watching) {
    EXPECT_GT(own->watched(), 0U);
    EXPECT_TRUE(own->unchanged()) << "rank " << own->rank();
  }
}

Tensors draw(int rank) {
  RandomTensors random(static_cast<std::uint64_t>(rank) + 1);
  Tensors tensors;
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{5, 3}, {70'000}, {1, 2, 3}}) {
    tensors.push_back(random.draw(shape));
  }
  return tensors;
}

TEST(SentTensors, AreNotWrittenToInARing) {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    SCOPED_TRACE(ranks);
    std::vector<DeviceId> owners;
    for (int rank = 0; rank < ranks; ++rank) owners.emplace_back(rank);
    expect_unchanged(ranks, [&](Communicator& self) {
      (void)reduce_in_ring(draw(self.rank()), draw(0), owners, self, {});
    });
  }
}

TEST(SentTensors, AreNotWrittenToInAnExactReduction) {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    SCOPED_TRACE(ranks);
    std::vector<LayerOwner> owners;
    for (int rank = 0; rank < ranks; ++rank) owners.push_back({DeviceId{rank}, {{rank, rank + 1}}});
    expect_unchanged(ranks, [&](Communicator& self) {
      const TreeNode leaf{self.rank(), self.rank() + 1};
      (void)reduce_exactly({{leaf, draw(self.rank())}}, draw(0), owners, ranks, self, {});
    });
  }
}

// Embedding and head lie on two devices each with two replicas, and on one device each with one.
TEST(SentTensors, AreNotWrittenToInSumsOfTiedUses) {
  const TestModel model = decoder_model();
  for (const int replicas : {1, 2}) {
    for (const int devices : {2, 3}) {
      const PlanForm form{.devices = devices, .replicas = replicas};
      SCOPED_TRACE(name_of(form));
      const Plan plan = make_plan(model, form);
      const StepProgram program =
          make_program(plan, make_timed_structure(model.spec), form.all_devices(), false);
      ASSERT_EQ(program.tied.size(), 1U);
      const TiedUses& uses = program.tied[0];
      expect_unchanged(form.all_devices(), [&](Communicator& self) {
        std::map<LayerId, Tensors> sums;
        for (const LayerId layer : uses.layers) {
          for (const LayerOwner& owner : program.topology.owners[layer.index()]) {
            if (owner.device.value == self.rank()) sums[layer] = {draw(layer.value)[1]};
          }
        }
        if (sums.empty()) {  // a stage in between: something to watch all the same
          self.send(self.rank() == 0 ? 1 : 0, {.index = self.rank(), .step = 9}, {at::zeros({1})});
          return;
        }
        add_tied_uses(uses, plan, DeviceId{self.rank()}, 0, self, sums, [](std::int64_t) {});
        at::Tensor expected = draw(uses.layers[0].value)[1] + draw(uses.layers[1].value)[1];
        for (auto& [layer, sum] : sums) {
          EXPECT_TRUE(at::equal(sum.at(0), expected));
          sum.at(0).add_(1);  // as an optimizer may
        }
      });
    }
  }
}

}  // namespace
}  // namespace frazil
