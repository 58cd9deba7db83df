#pragma once
// A model of parameters alone, with states made of a seed, and a run that keeps checkpoints.

#include <ATen/ATen.h>

#include <random>
#include <string>
#include <vector>

#include "exec/checkpoint/checkpoint_file.h"

namespace frazil {

inline const RunIdentity kRun{"00000000000000aa", 0xbb};
inline const std::string kFolder = "/run";

// The parameters have odd sizes, a layer has none, and two layers share one.
inline ModelSpec parameter_model(std::int64_t width = 5) {
  ModelSpec model;
  model.name = "parameters";
  model.blocks = {"all"};
  const auto add = [&](const std::string& name, std::vector<ParameterSpec> parameters) {
    LayerSpec layer;
    layer.name = name;
    layer.parameters = std::move(parameters);
    model.layers.push_back(std::move(layer));
  };
  add("embedding", {{.name = "table.weight", .shape = {3, width}, .tied = "table"}});
  add("activation", {});
  add("linear",
      {{.name = "linear.weight", .shape = {width, 2}}, {.name = "linear.bias", .shape = {width}}});
  add("head", {{.name = "table.weight", .shape = {3, width}, .tied = "table"}});
  return model;
}

// Every layer with parameters has `moments` moments, 0 to 2.
inline std::vector<LayerState> random_states(const ModelSpec& model, std::uint64_t seed,
                                             int moments = 2) {
  std::mt19937_64 random(seed);
  std::vector<LayerState> states;
  for (const LayerSpec& layer : model.layers) {
    LayerState& state = states.emplace_back();
    const auto fill = [&](Tensors& tensors) {
      for (const ParameterSpec& parameter : layer.parameters) {
        at::Tensor tensor = at::empty(parameter.shape, at::kFloat);
        // The bits are any, those of no number too.
        for (std::int64_t i = 0; i < tensor.numel(); ++i) {
          const auto bits = static_cast<std::uint32_t>(random());
          std::memcpy(tensor.mutable_data_ptr<float>() + i, &bits, sizeof bits);
        }
        tensors.push_back(tensor);
      }
    };
    fill(state.parameters);
    if (moments > 0) fill(state.first_moment);
    if (moments > 1) fill(state.second_moment);
    state.updates = static_cast<std::int64_t>(random() % 1000);
  }
  return states;
}

inline std::vector<const LayerState*> pointers(const std::vector<LayerState>& states) {
  std::vector<const LayerState*> all;
  for (const LayerState& state : states) all.push_back(&state);
  return all;
}

inline std::uint64_t hash_of(const std::vector<LayerState>& states) {
  return hash_states(pointers(states));
}

inline TrainingPosition position_at(Step step) {
  return {.step = step,
          .steps = 100,
          .step_in_epoch = step % 10,
          .epoch = static_cast<int>(step / 10),
          .epoch_loss = 0.1 + static_cast<double>(step),
          .epoch_samples = 8 * step,
          .learning_rate = 1.0 / 3,
          .mask = FreezeMask::parse("011", "test", 0),
          .authority = R"({"decided": [1, 2], "why": "\u00fc"})"};
}

}  // namespace frazil
