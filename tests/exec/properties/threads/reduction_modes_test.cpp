// Mode fast has a running sum per device and a ring over owners. It gives the gradients of mode
// exact but for rounding, and the same bits on every owner, and again when the same plan runs
// again.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "exec/communication/in_process_communicator.h"
#include "exec/reduction/ring_reduction.h"
#include "exec/reduction/running_sum.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

Tensors make_tensors(int rank, const std::vector<std::int64_t>& sizes) {
  Tensors tensors;
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    // Numbers are whole, so that sums are exact in any order.
    tensors.push_back(at::arange(sizes[t], at::kFloat) * (rank + 1) + static_cast<double>(t));
  }
  return tensors;
}

TEST(ReduceInRing, AddsWholeNumbersExactlyWhateverTheSizes) {
  for (const int owners : {2, 3, 4}) {
    for (const std::vector<std::int64_t>& sizes :
         std::vector<std::vector<std::int64_t>>{{1}, {2, 1}, {5, 7, 1}, {64, 3}, {100}}) {
      SCOPED_TRACE(std::to_string(owners) + " owners, first size " + std::to_string(sizes[0]));
      // Owners sit on every second rank, in the order of ranks.
      const auto ranks = make_in_process_communicators(2 * owners);
      std::vector<DeviceId> devices;
      for (int o = 0; o < owners; ++o) devices.emplace_back(2 * o);
      std::vector<Tensors> results(static_cast<std::size_t>(owners));
      std::vector<std::thread> threads;
      for (int o = 0; o < owners; ++o) {
        threads.emplace_back([&, o] {
          // The last owner has nothing to add.
          Tensors own = o + 1 == owners ? Tensors() : make_tensors(o, sizes);
          results[static_cast<std::size_t>(o)] =
              reduce_in_ring(std::move(own), make_tensors(0, sizes), devices,
                             *ranks[static_cast<std::size_t>(2 * o)], {});
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (std::size_t t = 0; t < sizes.size(); ++t) {
        at::Tensor expected = at::zeros({sizes[t]});
        for (int o = 0; o + 1 < owners; ++o) expected = expected + make_tensors(o, sizes)[t];
        for (const Tensors& result : results) EXPECT_TRUE(at::equal(result[t], expected));
      }
    }
  }
}

TEST(RunningSum, WritesOnlyIntoTensorsThatNobodyElseHolds) {
  RunningSum sum;
  EXPECT_TRUE(sum.take().empty());
  const at::Tensor held = at::ones({3});
  sum.add({held});
  sum.add({at::ones({3})});
  sum.add({at::ones({3})});
  EXPECT_TRUE(at::equal(held, at::ones({3})));
  EXPECT_TRUE(at::equal(sum.take()[0], at::full({3}, 3.0)));
  EXPECT_TRUE(sum.take().empty());
}

struct ReductionOutcome {
  std::uint64_t hash = 0;
  Tensors weights;
};

ReductionOutcome train(PlanShape shape, ReductionMode mode) {
  frazil::Run run(make_vit(small_config()), {.clip_norm = 0.5}, 7, devices_of(shape));
  Plan plan = make_small_plan(run.structure(), shape);
  plan.reduction = mode;
  run.transition_to(plan);
  for (Step step = 0; step < 3; ++step) {
    run.step(step, 1e-2, small_micro_batches(step, shape.micro_batches));
  }
  ReductionOutcome outcome{run.weight_hash(), {}};
  for (const LayerState* state : first_holders(run.pool().states(), kSmallLayers)) {
    for (const at::Tensor& parameter : state->parameters) {
      outcome.weights.push_back(parameter.detach());
    }
  }
  return outcome;
}

TEST(ModeFast, DiffersFromExactByRoundingAlone) {
  for (const PlanShape& shape : std::vector<PlanShape>{
           {.cuts = {{}}, .owned = {6}},
           {.cuts = {{3}}, .owned = {6}},
           {.cuts = {{}, {}}, .owned = {3, 3}},
           {.cuts = {{3}, {5}}, .owned = {4, 2}},
           {.micro_batches = 7, .cuts = {{}, {}, {}}, .owned = {4, 2, 1}, .mask = "00111"}}) {
    const ReductionOutcome exact = train(shape, ReductionMode::kExact);
    const ReductionOutcome fast = train(shape, ReductionMode::kFast);
    ASSERT_EQ(fast.weights.size(), exact.weights.size());
    for (std::size_t w = 0; w < exact.weights.size(); ++w) {
      // AdamW divides by the root of the square: a rounding of a tiny gradient moves a weight by
      // a visible part of the rate.
      EXPECT_TRUE(at::allclose(fast.weights[w], exact.weights[w], 1e-3, 2e-3)) << w;
    }
    EXPECT_EQ(train(shape, ReductionMode::kFast).hash, fast.hash) << "run again";
  }
}

}  // namespace
}  // namespace frazil
