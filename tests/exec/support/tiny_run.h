#pragma once
// A training run of seconds, a model profile for it made by hand, and what its trace says.

#include "exec/config/configured_run.h"
#include "exec/config/run_config.h"
#include "exec/train/trainer.h"
#include "exec/verbs/verb_inputs.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {

inline constexpr std::int64_t kTinySamples = 48;
inline constexpr Step kTinySteps = 18;
inline constexpr RunShape kTinyShape{.blocks = 5, .steps = kTinySteps, .steps_per_epoch = 6};
inline constexpr Bytes kAmpleMemory{1 << 30};  // of a device, for any plan

inline VitConfig& vit_of(RunConfig& config) {
  return std::get<VitConfig>(std::get<NetworkChoice>(config.model));
}

// The samples make 6 steps of 2 micro-batches of 4, for 3 epochs; freezing begins with the second
// epoch. It goes to the fastest plan under each mask: what else would pay in so few steps follows
// from what a transition takes on the machine.
inline RunConfig tiny_config() {
  RunConfig config;
  config.replan = Replanning::kGreedy;
  config.model = small_config();
  config.data.kind = DataConfig::Kind::kSynthetic;
  config.data.train_samples = kTinySamples;
  config.data.test_samples = 12;
  config.epochs = 3;
  config.batch_size = 8;
  config.micro_batch_size = 4;
  config.freeze.policy =
      AlphaFreeze{.alpha = 0.5, .start = 1, .interval = 1, .unit = PaceUnit::kEpochs};
  return config;
}

// The tiny run as a user has it who does not ask for "greedy".
inline RunConfig default_config() {
  RunConfig config = tiny_config();
  config.replan = RunConfig{}.replan;
  return config;
}

// Every layer is alike: 100 us forward, 200 us backward, 20 kB of stash at a micro-batch of 4.
inline ModelProfile tiny_profile(const RunConfig& config) {
  ModelProfile profile = structure_of(config);
  for (Layer& layer : profile.layers) {
    CostSample cost;
    cost.micro_batch_size = 4;
    cost.forward = std::chrono::microseconds(100);
    cost.forward_frozen = std::chrono::microseconds(80);
    cost.backward_input = std::chrono::microseconds(100);
    cost.backward_weight = std::chrono::microseconds(100);
    cost.backward_weight_alone = std::chrono::microseconds(150);
    cost.stash = Bytes{20'000};
    layer.costs = {cost};
    layer.update = std::chrono::microseconds(10);
  }
  return profile;
}

inline Cluster tiny_cluster(Bytes memory_limit) {
  return make_uniform_cluster(2, memory_limit,
                              {std::chrono::microseconds(5), BytesPerSecond{1'000'000'000}});
}

// Returns the steps of the events of one kind.
template <class Event>
std::vector<Step> steps_of(const FreezeTrace& trace) {
  std::vector<Step> steps;
  for (const FreezeEvent& event : trace.events) {
    if (std::holds_alternative<Event>(event.what)) steps.push_back(event.step);
  }
  return steps;
}

// Returns every mask that differs from the one before.
inline std::vector<TracedMask> masks_of(const FreezeTrace& trace) {
  std::vector<TracedMask> masks;
  for (const FreezeEvent& event : trace.events) {
    const auto* mask = std::get_if<MaskEvent>(&event.what);
    if (mask == nullptr || (!masks.empty() && masks.back().mask == mask->mask)) continue;
    masks.push_back({event.step, mask->mask});
  }
  return masks;
}

}  // namespace frazil
