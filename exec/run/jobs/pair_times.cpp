#include "exec/run/jobs/pair_times.h"

#include <ATen/ATen.h>

#include <chrono>
#include <utility>

#include "exec/devices/steady_time.h"
#include "exec/reduction/gradient_reduction.h"

namespace frazil {
namespace {

// One end of the pair.
class PairEnd {
 public:
  PairEnd(const PairQuestion& question, Communicator& self, const ComputeDevice& device)
      : question_(question),
        self_(self),
        device_(device),
        leads_(self.rank() == question.one.value),
        peer_(leads_ ? question.other.value : question.one.value) {}

  // Returns the time of a message there and one back.
  Duration go_and_return(const Tensors& message) {
    ++turn_;
    const Tag there{.index = 0, .step = turn_};
    const Tag back{.index = 1, .step = turn_};
    const SteadyTime start = std::chrono::steady_clock::now();
    if (leads_) {
      self_.send(peer_, there, message);
      (void)self_.receive(peer_, back);
    } else {
      (void)self_.receive(peer_, there);
      self_.send(peer_, back, message);
    }
    device_.finish();
    return since(start);
  }

  Duration reduce(const Tensors& gradient) {
    (void)go_and_return({});  // both begin together
    const std::vector<LayerOwner> owners{{question_.one, {{0, 1}}}, {question_.other, {{1, 2}}}};
    const int leaf = leads_ ? 0 : 1;
    const SteadyTime start = std::chrono::steady_clock::now();
    (void)reduce_exactly({{TreeNode{leaf, leaf + 1}, gradient}}, gradient, owners, 2, self_,
                         {.step = turn_});
    device_.finish();
    return since(start);
  }

  Tensors make_message(std::int64_t bytes) const {
    if (bytes == 0) return {};
    const auto elements = bytes / static_cast<std::int64_t>(sizeof(float));
    return {at::ones({elements}, at::TensorOptions(device_.place()))};
  }

  bool leads() const { return leads_; }

 private:
  const PairQuestion& question_;
  Communicator& self_;
  const ComputeDevice& device_;
  bool leads_;
  int peer_;
  Step turn_ = 0;
};

}  // namespace

PairTimes measure_pair(const PairQuestion& question, Communicator& self,
                       const ComputeDevice& device) {
  PairEnd end(question, self, device);
  PairTimes times;
  for (const std::int64_t bytes : question.sizes) {
    const Tensors message = end.make_message(bytes);
    std::vector<Duration> halves;
    // The first ones find memory that nobody has touched yet.
    for (int i = -2; i < question.repetitions; ++i) {
      const Duration both = end.go_and_return(message);
      if (i >= 0) halves.push_back(both / 2);
    }
    times.one_way.push_back(std::move(halves));
  }
  const Tensors gradient = end.make_message(kReducedBytes);
  for (int i = 0; i < question.reductions; ++i) times.reductions.push_back(end.reduce(gradient));
  return end.leads() ? times : PairTimes{};
}

}  // namespace frazil
