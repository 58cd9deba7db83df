// The jobs of a DevicePool (exec/run/device_pool.h) that read weights between two steps:
// evaluation, signals, digests.
#include "exec/run/device_pool.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "exec/run/freeze_signals.h"
#include "exec/tensors/finite.h"
#include "profiles/error.h"

namespace frazil {

namespace {

// Whether the last dimension holds a score of each class for each label: of a sample or of a token.
// A number is no class.
bool are_scores(const at::Tensor& output, const at::Tensor& labels) {
  return !labels.is_floating_point() && output.dim() == labels.dim() + 1 &&
         output.sizes().slice(0, labels.sizes().size()) == labels.sizes();
}

}  // namespace

std::vector<DeviceId> DevicePool::first_holders() const {
  std::vector<DeviceId> first;
  first.reserve(held_.size());
  for (const std::vector<DeviceId>& holders : held_) first.push_back(holders.front());
  return first;
}

void DevicePool::forward_all(const EvaluatedNetwork& evaluated, const SampleSource& samples,
                             int size, const std::function<LayerVisitor(std::size_t)>& visitor_of) {
  std::vector<DeviceId> runs_on;
  for (const LayerId layer : evaluated.layer_of) runs_on.push_back(held_[layer.index()].front());
  ++jobs_;
  run_job([&](DeviceId device) {
    const std::size_t d = local(device);
    // Each layer counts as an ended action: all samples together may take longer than a step may.
    const LayerVisitor visit = visitor_of(d);
    run_forward({evaluated.network, evaluated.layer_of, runs_on, device, states_[d], devices_[d]},
                samples, size, *communicators_[d], jobs_,
                [&](LayerId layer, int micro_batch, const Samples& some, const Tensors& outputs) {
                  visit(layer, micro_batch, some, outputs);
                  ended_actions_.fetch_add(1, std::memory_order_relaxed);
                });
  });
}

EvaluationAnswer DevicePool::evaluate(const SampleSource& samples, int micro_batch_size) {
  std::vector<EvaluationAnswer> answers(states_.size());
  const EvaluatedNetwork& evaluated = model_.evaluated ? *model_.evaluated : whole_;
  const ModelSpec& network = evaluated.network;
  const LayerId last{network.layers.size() - 1};
  forward_all(evaluated, samples, micro_batch_size, [&](std::size_t d) -> LayerVisitor {
    return [&, d](LayerId layer, int micro_batch, const Samples& some, const Tensors& outputs) {
      EvaluationAnswer& answer = answers[d];
      const auto& count_labels = network.layers[layer.index()].count_labels;
      if (network.has_loss(layer)) {
        const std::int64_t count = count_labels ? count_labels(some.labels) : some.count();
        answer.losses.push_back({micro_batch, layer, 0, count});
        if (count > 0) {
          const at::Tensor loss = network.layers[layer.index()].loss(outputs, some.labels);
          answer.losses.back().value = loss.item<double>() * static_cast<double>(count);
        }
      }
      if (layer != last || !are_scores(outputs.at(0), some.labels)) return;
      const auto count = [&](const at::Tensor& labels) {
        return count_labels ? count_labels(labels) : labels.numel();
      };
      // A label that counts for nothing may be one that the scores name.
      answer.right += count(some.labels.masked_select(outputs[0].argmax(-1).eq(some.labels)));
      answer.judged += count(some.labels);
    };
  });
  EvaluationAnswer all;
  for (EvaluationAnswer& answer : answers) {
    all.losses.insert(all.losses.end(), answer.losses.begin(), answer.losses.end());
    all.right += answer.right;
    all.judged += answer.judged;
  }
  return all;
}

std::vector<BlockNumbers> DevicePool::sketch_blocks(const Samples& probe) {
  std::vector<std::vector<BlockNumbers>> found(states_.size());
  const auto is_last = [this](LayerId layer) {
    const std::size_t next = layer.index() + 1;
    return next == model_.layers.size() ||
           model_.layers[next].block != model_.layers[layer.index()].block;
  };
  forward_all(whole_, probe, static_cast<int>(probe.count()), [&](std::size_t d) -> LayerVisitor {
    return [&, d](LayerId layer, int, const Samples& some, const Tensors& outputs) {
      if (!is_last(layer)) return;
      found[d].push_back(
          {model_.layers[layer.index()].block, layer, sketch_outputs(outputs, some.count())});
    };
  });
  return joined(std::move(found));
}

std::vector<BlockNumbers> DevicePool::interval_gradients() {
  std::vector<std::vector<BlockNumbers>> found(states_.size());
  run_job([&](DeviceId device) {
    for (const auto& [layer, state] : states_[local(device)]) {
      if (held_[layer.index()].front() != device) continue;
      BlockNumbers numbers{model_.layers[layer.index()].block, layer, {}};
      for (const at::Tensor& sum : state.gradient_sums) {
        numbers.values.push_back(sum.to(at::kDouble).abs().sum().item<double>());
      }
      found[local(device)].push_back(std::move(numbers));
    }
  });
  return joined(std::move(found));
}

std::vector<LayerDigest> DevicePool::digests() {
  std::vector<std::vector<LayerDigest>> found(states_.size());
  run_job([&](DeviceId device) {
    for (const auto& [layer, state] : states_[local(device)]) {
      found[local(device)].push_back({layer, device, hash_state(state)});
    }
  });
  return joined(std::move(found));
}

std::optional<LayerId> DevicePool::find_non_finite() {
  std::vector<std::optional<LayerId>> found(states_.size());
  run_job([&](DeviceId device) {
    for (const auto& [layer, state] : states_[local(device)]) {
      if (are_finite(state.parameters) && are_finite(state.first_moment) &&
          are_finite(state.second_moment)) {
        continue;
      }
      found[local(device)] = layer;
      return;
    }
  });
  std::optional<LayerId> first;
  for (const std::optional<LayerId>& layer : found) {
    if (layer) first = std::min(*layer, first.value_or(*layer));
  }
  return first;
}

void DevicePool::clear_gradient_sums() {
  run_job([&](DeviceId device) {
    for (auto& [layer, own] : states_[local(device)]) own.gradient_sums.clear();
  });
}

// Layers of this process lie there already; the others come as messages, in layer order.
std::vector<Tensors> DevicePool::collect(MessageKind kind, const TensorsOf& what) {
  const std::vector<DeviceId> holders = first_holders();
  const bool is_taker = place_.is_here(DeviceId{0});
  const auto comes_from_afar = [&](DeviceId holder) {
    return !place_.process_of.empty() && place_.process_of[holder.index()] != place_.process_of[0];
  };
  std::vector<Tensors> taken(is_taker ? holders.size() : 0);
  ++jobs_;
  run_job([&](DeviceId device) {
    for (std::size_t l = 0; l < holders.size(); ++l) {
      const LayerId layer{l};
      const Tag tag{.kind = kind, .stage = layer.value, .index = layer.value, .step = jobs_};
      if (!comes_from_afar(holders[l])) {
        if (holders[l] == device && is_taker) taken[l] = what(device, layer);
      } else if (holders[l] == device) {
        communicators_[local(device)]->send(0, tag, what(device, layer));
      } else if (device == DeviceId{0}) {
        taken[l] = communicators_[0]->receive(holders[l].value, tag);
      }
    }
  });
  return taken;
}

std::vector<LayerState> DevicePool::gather_states() {
  std::vector<LayerState> states;
  for (Tensors& packed : collect(MessageKind::kLayerState, [this](DeviceId device, LayerId layer) {
         return pack(states_[local(device)].at(layer), /*freezes=*/false);
       })) {
    states.push_back(unpack(std::move(packed), state_memory_));
  }
  return states;
}

std::vector<Tensors> DevicePool::outputs(const Samples& samples) {
  std::vector<std::map<LayerId, Tensors>> found(states_.size());
  forward_all(whole_, samples, static_cast<int>(samples.count()),
              [&](std::size_t d) -> LayerVisitor {
                return [&, d](LayerId layer, int, const Samples&, const Tensors& outputs) {
                  Tensors& own = found[d][layer];
                  for (const at::Tensor& output : outputs) own.push_back(output.cpu());
                };
              });
  return collect(MessageKind::kLayerOutput,
                 [&](DeviceId device, LayerId layer) { return found[local(device)].at(layer); });
}

}  // namespace frazil
