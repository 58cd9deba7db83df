#include "tests/exec/support/measured_memories.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "exec/cache/prefix_cache.h"
#include "exec/measuring/stash_meter.h"
#include "exec/state/optimizer.h"
#include "exec/tensors/sample_rows.h"
#include "planner/prediction/simulate_plan.h"

namespace frazil {

std::int64_t held(const MemoryTrace& simulated, MemoryKind kind) {
  return simulated.most[static_cast<std::size_t>(kind)].count;
}

std::int64_t held(const MeasuredMemory& memory, MemoryKind kind) {
  return memory.peak[static_cast<std::size_t>(kind)].count;
}

ModelProfile make_measured_profile(const ModelSpec& model, const OptimizerConfig& optimizer,
                                   const Samples& micro_batch) {
  DeviceState state;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    state[LayerId{l}] = make_initial_state(model, LayerId{l}, 7);
  }
  ModelProfile profile = make_structure(model, optimizer_bytes_per_parameter_byte(optimizer));
  for (Layer& layer : profile.layers) layer.costs.clear();
  for (int size = 1; size <= micro_batch.count(); ++size) {
    const Samples samples = narrow(micro_batch, 0, size);
    const std::vector<Bytes> stashes = measure_stashes(model, state, samples);
    const std::vector<Bytes> frozen = measure_stashes(model, state, samples, true);
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      CostSample cost;
      cost.micro_batch_size = size;
      cost.forward = cost.forward_frozen = std::chrono::microseconds(100);
      cost.backward_input = std::chrono::microseconds(110);
      cost.backward_weight = std::chrono::microseconds(90);
      cost.backward_weight_alone = std::chrono::microseconds(200);
      cost.stash = stashes[l];
      cost.stash_frozen = frozen[l];
      profile.layers[l].costs.push_back(cost);
    }
  }
  return profile;
}

Memories measure_memories(const ModelSpec& model, const OptimizerConfig& optimizer,
                          const ModelProfile& profile, const Plan& plan, int devices,
                          const std::vector<std::vector<Samples>>& steps) {
  frazil::Run run(model, optimizer, 7, devices);
  const FileSystem files = real_file_system();
  std::optional<PrefixCache> cache;
  std::vector<std::int64_t> samples;
  if (plan.cache_frozen_prefix) {
    samples.resize(static_cast<std::size_t>(plan.batch_size));
    std::iota(samples.begin(), samples.end(), std::int64_t{0});
    cache.emplace(model, run.outputs(steps.at(0).front()), plan.batch_size, files,
                  PrefixCacheOptions{.limits = {Bytes{1 << 24}, {}, {}}});
    run.attach(*cache);
  }
  run.transition_to(plan);
  run.step(0, 1e-2, steps.at(0), false, {}, samples);
  run.measure({.memory = true});
  const Cluster cluster =
      make_uniform_cluster(devices, Bytes{1LL << 30}, {std::chrono::microseconds(1), {}});
  const SimulatedStep step = simulate_step(plan, {profile, cluster});
  return {simulate_memory(step.lowered.graph, {profile, cluster}),
          run.step(1, 1e-2, steps.at(1), false, {}, samples).memory};
}

void expect_equal(const Memories& memories) {
  ASSERT_EQ(memories.measured.size(), memories.simulated.size());
  for (std::size_t d = 0; d < memories.measured.size(); ++d) {
    const MeasuredMemory& measured = memories.measured[d];
    const MemoryTrace& simulated = memories.simulated[d];
    EXPECT_EQ(measured.device, DeviceId{d});
    for (const MemoryKind kind : {MemoryKind::kParameters, MemoryKind::kGradients,
                                  MemoryKind::kOptimizer, MemoryKind::kReceive}) {
      EXPECT_EQ(held(measured, kind), held(simulated, kind))
          << "device " << d << ", " << memory_kind_name(kind);
    }
    const auto stash = static_cast<double>(held(simulated, MemoryKind::kStash));
    EXPECT_NEAR(static_cast<double>(held(measured, MemoryKind::kStash)), stash, 0.02 * stash)
        << "device " << d;
  }
}

}  // namespace frazil
