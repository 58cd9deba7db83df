#include "exec/reduction/batch_statistics.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <set>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

bool is_counter(const at::Tensor& statistic) { return statistic.scalar_type() == at::kLong; }

// Returns null for a device that does not own the layer.
const LayerOwner* find_owner(const StepProgram& program, LayerId layer, DeviceId device) {
  const std::vector<LayerOwner>& owners = program.topology.owners[layer.index()];
  const auto found = std::find_if(owners.begin(), owners.end(),
                                  [&](const LayerOwner& owner) { return owner.device == device; });
  return found == owners.end() ? nullptr : &*found;
}

// Returns the mean of a statistic over the parts of a micro-batch, weighted by their samples. One
// part is the micro-batch itself and keeps its bits.
at::Tensor average_parts(const std::vector<StagePart>& parts,
                         const std::map<DeviceId, Tensors>& found, std::size_t statistic,
                         at::Device place) {
  ENSURE(found.size() == parts.size(), "statistics of every part of a micro-batch");
  const auto of = [&](const StagePart& part) {
    return found.at(part.device).at(statistic).to(place);
  };
  if (parts.size() == 1) return of(parts.front());
  at::Tensor sum = at::zeros_like(of(parts.front()));
  int samples = 0;
  for (const StagePart& part : parts) {
    sum.add_(of(part) * part.samples.count());
    samples += part.samples.count();
  }
  return sum.div_(samples);
}

}  // namespace

bool keeps_statistics(const ModelSpec& model, const Activity& activity, LayerId layer) {
  const LayerSpec& spec = model.layers[layer.index()];
  // A layer that was put into evaluation has statistics, but does not vary.
  return !spec.statistics.empty() && spec.varies_in_training &&
         activity.layers[layer.index()].trains && !activity.is_cached(layer);
}

bool keeps_statistics(const ModelSpec& model, const StepProgram& program, DeviceId device) {
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    if (keeps_statistics(model, program.activity, LayerId{l}) &&
        find_owner(program, LayerId{l}, device) != nullptr) {
      return true;
    }
  }
  return false;
}

BatchStatistics::BatchStatistics(const ModelSpec& model, const StepProgram& program,
                                 DeviceId device, DeviceState& state, Communicator& communicator)
    : model_(model),
      program_(program),
      device_(device),
      state_(state),
      communicator_(communicator) {
  std::map<DeviceId, std::vector<LayerId>> shared;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerId layer{l};
    if (!keeps_statistics(model, program.activity, layer)) continue;
    if (find_owner(program, layer, device) == nullptr) continue;
    layers_.push_back(layer);
    for (const LayerOwner& owner : program.topology.owners[l]) {
      if (owner.device != device) shared[owner.device].push_back(layer);
    }
  }
  for (auto& [peer, layers] : shared) peers_.push_back({peer, std::move(layers)});
}

void BatchStatistics::begin(const RandomKey& key) {
  key_ = key;
  is_shared_ = false;
  found_.clear();
}

void BatchStatistics::add(LayerId layer, MicroBatchId micro_batch, Tensors statistics) {
  ENSURE(statistics.size() == model_.layers[layer.index()].statistics.size(),
         "a layer hands out each of its statistics");
  const bool is_new = found_[layer][micro_batch].emplace(device_, std::move(statistics)).second;
  ENSURE(is_new, "a micro-batch is forwarded once");
}

std::vector<MicroBatchId> BatchStatistics::micro_batches(LayerId layer, DeviceId device) const {
  std::vector<MicroBatchId> all;
  for (const TreeNode& some : find_owner(program_, layer, device)->micro_batches) {
    for (std::int32_t m = some.first; m < some.end; ++m) all.emplace_back(m);
  }
  return all;
}

// Everything is one tensor, layer by layer, micro-batch by micro-batch; the receiver knows its
// parts from the plan.
at::Tensor BatchStatistics::pack(const Peer& peer) const {
  Tensors flat;
  for (const LayerId layer : peer.layers) {
    for (const MicroBatchId micro_batch : micro_batches(layer, device_)) {
      for (const at::Tensor& statistic : found_.at(layer).at(micro_batch).at(device_)) {
        if (statistic.defined()) flat.push_back(statistic.reshape({-1}));
      }
    }
  }
  return flat.empty() ? at::empty({0}) : at::cat(flat).cpu();
}

void BatchStatistics::unpack(const Peer& peer, const at::Tensor& packed) {
  std::int64_t next = 0;
  for (const LayerId layer : peer.layers) {
    const Tensors& running = state_.at(layer).statistics;
    const std::vector<bool> moved = find_moved(layer);
    for (const MicroBatchId micro_batch : micro_batches(layer, peer.device)) {
      Tensors& statistics = found_[layer][micro_batch][peer.device];
      for (std::size_t s = 0; s < running.size(); ++s) {
        const at::Tensor& like = running[s];
        at::Tensor& statistic = statistics.emplace_back();
        if (is_counter(like) || !moved[s]) continue;
        statistic = packed.narrow(0, next, like.numel()).view(like.sizes());
        next += like.numel();
      }
    }
  }
  ENSURE(next == packed.numel(), "a device sends the statistics of its micro-batches");
}

void BatchStatistics::share() {
  if (std::exchange(is_shared_, true)) return;
  const c10::NoGradGuard no_grad;
  const Tag tag{.kind = MessageKind::kStatistics, .step = key_.step};
  for (const Peer& peer : peers_) communicator_.send(peer.device.value, tag, {pack(peer)});
  for (const Peer& peer : peers_) {
    unpack(peer, communicator_.receive(peer.device.value, tag).at(0));
  }
}

std::vector<StagePart> BatchStatistics::find_parts_of(LayerId layer,
                                                      MicroBatchId micro_batch) const {
  const std::vector<Pipeline>& pipelines = program_.plan.pipelines;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    for (const MicroBatches& some : pipelines[p].micro_batches) {
      if (micro_batch < some.first || some.last < micro_batch) continue;
      return find_parts(pipelines[p], program_.topology.pipelines[p].stage_of[layer.index()],
                        micro_batch, samples_in(program_.plan, micro_batch));
    }
  }
  fail_ensure(__FILE__, __LINE__, "a micro-batch of no pipeline");
}

std::vector<bool> BatchStatistics::find_moved(LayerId layer) const {
  const LayerSpec& spec = model_.layers[layer.index()];
  if (!spec.moved) return std::vector<bool>(spec.statistics.size(), true);
  return spec.moved(layer, state_.at(layer).parameters, key_).statistics;
}

void BatchStatistics::fold(LayerId layer) {
  ENSURE(is_shared_, "what other owners have is there");
  const c10::NoGradGuard no_grad;
  const auto found = std::exchange(found_[layer], {});
  ENSURE(static_cast<int>(found.size()) == program_.plan.micro_batches(),
         "statistics of every micro-batch");
  const std::vector<StatisticSpec>& specs = model_.layers[layer.index()].statistics;
  const std::vector<bool> moved = find_moved(layer);
  std::vector<std::vector<StagePart>> parts;
  for (const auto& [micro_batch, own] : found) parts.push_back(find_parts_of(layer, micro_batch));
  for (std::size_t s = 0; s < specs.size(); ++s) {
    if (!moved[s]) continue;
    at::Tensor& running = state_.at(layer).statistics.at(s);
    if (is_counter(running)) {
      running.add_(static_cast<std::int64_t>(found.size()));
      continue;
    }
    const double momentum = specs[s].momentum;
    auto own_parts = parts.begin();
    for (const auto& [micro_batch, own] : found) {
      const at::Tensor whole = average_parts(*own_parts++, own, s, running.device());
      running.mul_(1 - momentum).add_(whole * momentum);
    }
  }
}

}  // namespace frazil
