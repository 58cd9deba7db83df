#include "tests/exec/support/rank_training.h"

#include <algorithm>
#include <chrono>

namespace frazil {
namespace {

DeviceState make_state(const ModelSpec& model, std::uint64_t seed, const StepProgram& program,
                       DeviceId rank, const ComputeDevice& device) {
  DeviceState state;
  for (const Pipeline& pipeline : program.plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      if (std::find(stage.devices.begin(), stage.devices.end(), rank) == stage.devices.end()) {
        continue;
      }
      for_each_layer(stage, [&](LayerId layer) {
        if (state.contains(layer)) return;
        LayerState& own = state[layer] = make_initial_state(model, layer, seed);
        set_active(own, program.activity.layers[layer.index()].active);
        device.adopt(own);
      });
    }
  }
  return state;
}

int count_samples(const std::vector<Samples>& micro_batches) {
  std::int64_t samples = 0;
  for (const Samples& some : micro_batches) samples += some.count();
  return static_cast<int>(samples);
}

}  // namespace

RankTraining::RankTraining(const ModelSpec& model, const OptimizerConfig& optimizer,
                           std::uint64_t seed, const StepProgram& program,
                           Communicator& communicator, const ComputeDevice& device)
    : seed_(seed),
      state_(make_state(model, seed, program, DeviceId{communicator.rank()}, device)),
      recorder_(DeviceId{communicator.rank()}, std::chrono::steady_clock::now(), device),
      executor_(ExecutionContext{model, optimizer, program, DeviceId{communicator.rank()}, state_,
                                 communicator, recorder_, measurement_}) {}

double RankTraining::step(Step step, double learning_rate,
                          const std::vector<Samples>& micro_batches) {
  const StepInput input{.step = step,
                        .seed = seed_,
                        .learning_rate = learning_rate,
                        .micro_batches = &micro_batches,
                        .samples = count_samples(micro_batches),
                        .rate_factors = {},
                        .cache = nullptr,
                        .sample_ids = nullptr};
  double loss = 0;
  for (const LossSample& sample : executor_.run_step(input)) loss += sample.value;
  return loss;
}

std::map<LayerId, std::uint64_t> RankTraining::hashes_of(const DeviceState& state) {
  std::map<LayerId, std::uint64_t> hashes;
  for (const auto& [layer, own] : state) hashes[layer] = hash_states({&own});
  return hashes;
}

}  // namespace frazil
