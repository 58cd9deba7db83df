#include "exec/reduction/gradient_sums.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "exec/reduction/gradient_reduction.h"
#include "exec/reduction/ring_reduction.h"
#include "exec/reduction/tied_sums.h"
#include "exec/tensors/tensor_bytes.h"
#include "planner/plan/reduction_groups.h"
#include "profiles/error.h"

namespace frazil {
namespace {

std::vector<DeviceId> devices_of(const std::vector<LayerOwner>& owners) {
  std::vector<DeviceId> devices;
  devices.reserve(owners.size());
  for (const LayerOwner& owner : owners) devices.push_back(owner.device);
  return devices;
}

bool holds(const std::vector<DeviceId>& devices, DeviceId device) {
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

}  // namespace

GradientSums::GradientSums(const StepProgram& program, DeviceId device, const DeviceState& state,
                           Communicator& communicator, MemoryAccount& memory)
    : program_(program),
      device_(device),
      state_(state),
      communicator_(communicator),
      memory_(memory),
      is_exact_(program.plan.reduction == ReductionMode::kExact) {
  for (std::size_t l = 0; l < program.topology.owners.size(); ++l) {
    if (!program.activity.layers[l].weight_gradient) continue;
    if (holds(devices_of(program.topology.owners[l]), device)) layers_.insert(LayerId{l});
  }
}

void GradientSums::begin(Step step) {
  step_ = step;
  reduced_ = finished_ = false;
  trees_.clear();
  running_.clear();
  sums_.clear();
  taken_.clear();
  for (const LayerId layer : layers_) {
    if (is_exact_) trees_.emplace(layer, GradientTree(program_.plan.micro_batches()));
  }
}

void GradientSums::add(LayerId layer, MicroBatchId micro_batch, Tensors gradients) {
  reserve(layer, is_exact_ ? trees_.at(layer).held() + 1 : 1);
  if (is_exact_) {
    trees_.at(layer).add({micro_batch.value, micro_batch.value + 1}, std::move(gradients));
  } else {
    running_[layer].add(std::move(gradients));
  }
}

// Reserves memory for so many sets of a layer's gradients. Only the peak counts.
void GradientSums::reserve(LayerId layer, std::size_t sets) {
  if (!memory_.is_open()) return;
  const std::int64_t bytes = count_bytes(trainable_parameters(state_.at(layer)));
  memory_.reserve_gradients(layer, Bytes{bytes} * static_cast<std::int64_t>(sets));
}

// Returns what is reserved for these layers. It has room for the finished sums at least, also on a
// device without micro-batches.
Bytes GradientSums::reserved_of(const std::vector<LayerId>& layers) {
  Bytes reserved;
  for (const LayerId layer : layers) {
    reserve(layer, 1);
    reserved += memory_.reserved_gradients(layer);
  }
  return reserved;
}

void GradientSums::reduce() {
  if (std::exchange(reduced_, true)) return;
  for (const std::vector<LayerId>& group : program_.topology.groups) {
    if (layers_.contains(group.front())) reduce_group(group);
  }
  finish();
}

void GradientSums::reduce_group(const std::vector<LayerId>& group) {
  Tensors like;
  for (const LayerId layer : group) {
    const Tensors parameters = trainable_parameters(state_.at(layer));
    like.insert(like.end(), parameters.begin(), parameters.end());
  }
  const Tag tag{.index = group.front().value, .step = step_};
  ReductionMeter meter(memory_, reserved_of(group));
  const auto tell_held = [&](std::int64_t bytes) { meter.hold(bytes); };
  const Tensors sums = is_exact_ ? reduce_exact_group(group, like, tag, tell_held)
                                 : reduce_fast_group(group, like, tag, tell_held);
  auto next = sums.begin();
  for (const LayerId layer : group) {
    const auto count = static_cast<std::ptrdiff_t>(trainable_parameters(state_.at(layer)).size());
    sums_[layer] = Tensors(next, next + count);
    next += count;
  }
}

Tensors GradientSums::reduce_exact_group(const std::vector<LayerId>& group, const Tensors& like,
                                         Tag tag, const TellHeld& tell_held) {
  std::vector<std::pair<TreeNode, Tensors>> nodes;
  for (const LayerId layer : group) {
    std::vector<std::pair<TreeNode, Tensors>> own = trees_.at(layer).take_nodes();
    if (nodes.empty()) {
      nodes = std::move(own);
      continue;
    }
    ENSURE(own.size() == nodes.size(), "layers with equal owners have equal nodes");
    for (std::size_t n = 0; n < own.size(); ++n) {
      std::move(own[n].second.begin(), own[n].second.end(), std::back_inserter(nodes[n].second));
    }
  }
  return reduce_exactly(std::move(nodes), like, program_.topology.owners[group.front().index()],
                        program_.plan.micro_batches(), communicator_, tag, tell_held);
}

Tensors GradientSums::reduce_fast_group(const std::vector<LayerId>& group, const Tensors& like,
                                        Tag tag, const TellHeld& tell_held) {
  Tensors own;
  for (const LayerId layer : group) {
    Tensors sum = running_[layer].take();
    std::move(sum.begin(), sum.end(), std::back_inserter(own));
  }
  return reduce_in_ring(std::move(own), like,
                        devices_of(program_.topology.owners[group.front().index()]), communicator_,
                        tag, tell_held);
}

// Takes the sums of layers that were not reduced, which are complete on this device, and then adds
// the uses of tied parameters.
void GradientSums::finish() {
  if (std::exchange(finished_, true)) return;
  for (const LayerId layer : layers_) {
    if (sums_.contains(layer)) continue;
    sums_[layer] = is_exact_ ? trees_.at(layer).take_root() : running_[layer].take();
  }
  for (const TiedUses& uses : program_.tied) add_uses(uses);
}

void GradientSums::add_uses(const TiedUses& uses) {
  if (!holds(uses.devices, device_)) return;
  Layers here;
  std::set_intersection(layers_.begin(), layers_.end(), uses.layers.begin(), uses.layers.end(),
                        std::inserter(here, here.end()));
  ReductionMeter meter(memory_, reserved_of({here.begin(), here.end()}));
  add_tied_uses(uses, program_.plan, device_, step_, communicator_, sums_,
                [&](std::int64_t bytes) { meter.hold(bytes); });
}

std::map<LayerId, Tensors> GradientSums::complete() {
  finish();
  std::map<LayerId, Tensors> sums = sums_;
  for (const TiedUses& uses : program_.tied) {
    for (std::size_t u = 1; u < uses.layers.size(); ++u) sums.erase(uses.layers[u]);
  }
  return sums;
}

Tensors GradientSums::take(LayerId layer) {
  if (!program_.versions.empty()) {
    return is_exact_ ? trees_.at(layer).take_folded() : running_[layer].take();
  }
  finish();
  const auto found = sums_.find(layer);
  ENSURE(found != sums_.end(), "a layer is updated once");
  Tensors sum = std::move(found->second);
  sums_.erase(found);
  taken_.insert(layer);
  return sum;
}

}  // namespace frazil
