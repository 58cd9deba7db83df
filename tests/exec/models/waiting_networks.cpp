#include "tests/exec/models/waiting_networks.h"

#include <ATen/ATen.h>

#include <thread>

#include "exec/models/model_parts.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::int64_t kValues = 4;

using Waits = std::map<std::int64_t, Duration>;

LayerSpec make_waiting_layer(int block, const Waits& forward, const Waits& backward) {
  return {.name = "block" + std::to_string(block),
          .block = BlockId{block},
          .parameters = {linear_weight("block" + std::to_string(block), kValues, kValues)},
          .forward = [forward, backward](const LayerCall& call) -> Tensors {
            const at::Tensor& x = call.inputs.at(0);
            std::this_thread::sleep_for(forward.at(x.size(0)));
            at::Tensor y = at::linear(x, call.parameters[0]);
            if (y.requires_grad()) {
              y.register_hook([wait = backward.at(x.size(0))](const at::Tensor&) {
                std::this_thread::sleep_for(wait);
              });
            }
            return {y};
          },
          .output_bytes_per_sample = {float_bytes(kValues)},
          .has_seams = false};
}

ModelSpec make_waiting_network(const std::string& name, const std::vector<BlockWaits>& waits,
                               Waits BlockWaits::*forward) {
  ModelSpec model;
  model.name = name;
  model.input_bytes_per_sample = float_bytes(kValues);
  for (std::size_t b = 0; b < waits.size(); ++b) {
    model.layers.push_back(
        make_waiting_layer(static_cast<int>(b), waits[b].*forward, waits[b].backward));
    model.blocks.push_back(model.layers.back().name);
  }
  model.layers.back().loss = class_loss;
  model.edges = make_chain(model.layers);
  return model;
}

}  // namespace

Distillation make_waiting_networks(const std::vector<BlockWaits>& waits) {
  Distillation networks{.teacher = make_waiting_network("teacher", waits, &BlockWaits::teacher),
                        .student = make_waiting_network("student", waits, &BlockWaits::forward),
                        .blocks = {}};
  for (std::size_t b = 0; b < waits.size(); ++b) {
    networks.blocks.push_back(
        {.name = networks.student.blocks[b], .teacher_end = b + 1, .student_end = b + 1});
  }
  return networks;
}

ModelProfile make_waiting_profile(const ModelSpec& model, const std::vector<BlockWaits>& waits) {
  ModelProfile profile = make_structure(model, 0);
  for (Layer& layer : profile.layers) {
    layer.costs.clear();
    const std::size_t place = layer.name.find("block");
    const BlockWaits& own = waits.at(std::stoul(layer.name.substr(place + 5)));
    for (const auto& [samples, wait] : own.teacher) {
      CostSample cost;
      cost.micro_batch_size = static_cast<int>(samples);
      if (layer.name.starts_with("teacher.")) cost.forward = cost.forward_frozen = wait;
      if (layer.name.starts_with("student.")) {
        cost.forward = cost.forward_frozen = own.forward.at(samples);
        cost.backward_weight = cost.backward_weight_alone = own.backward.at(samples);
      }
      layer.costs.push_back(cost);
    }
  }
  return profile;
}

Samples make_waiting_samples(std::int64_t count, std::uint64_t seed) {
  at::Generator generator = make_generator(seed, 0, 0, 0);
  return {{draw_normal({count, kValues}, generator)}, draw_integers({count}, kValues, generator)};
}

}  // namespace frazil
