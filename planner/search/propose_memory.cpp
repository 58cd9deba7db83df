// The part of Proposer that says what the stages of a proposal hold.
#include "planner/search/propose.h"

#include <algorithm>

namespace frazil {

// Returns what a stage holds. A stage that recomputes keeps its inputs, and the whole stash of one
// micro-batch at a time.
Bytes Proposer::held(const ChainSums& sums, LayerSpan span, int sets, const InFlight& in_flight,
                     bool recompute) const {
  Bytes kept = stash_in_flight(sums, span, in_flight);
  if (recompute) {
    const Bytes stash = sums.stash(span);
    const Bytes input = std::min(
        stash,
        std::max(sums.largest_down(), Bytes{input_per_sample_.count * sums.micro_batch_size()}));
    kept = input * in_flight.until_weight + (stash - input);
  }
  return sums.parameters(span) + sums.optimizer(span) + sums.updated_parameters(span) * sets + kept;
}

bool Proposer::keeps(const Shape& shape, const GroupClass& group, const std::vector<LayerId>& cuts,
                     MemoryRule rule) const {
  const Cluster& group_cluster = device_classes_.cluster(group.device_class);
  const auto devices = static_cast<int>(group_cluster.devices.size());
  const std::vector<LayerSpan> spans = sums_.spans_of(cuts);
  const auto stages = static_cast<int>(spans.size());
  const Bytes receive =
      rule == MemoryRule::kWithLargestReceive ? sums_.of(shape).largest_down() : Bytes{};
  for (int s = 0; s < stages; ++s) {
    const int device = device_of_stage(placement_of(shape.variant), devices, 0, s);
    const Bytes limit = group_cluster.devices[static_cast<std::size_t>(device)].memory_limit;
    const InFlight in_flight = most_in_flight(shape.variant, group.share, stages, s);
    const Bytes needed =
        held(sums_.of(shape), spans[static_cast<std::size_t>(s)], group.gradient_sets, in_flight,
             recomputes(shape.variant, s, stages)) +
        receive;
    if (needed > Bytes{limit.count / stages_per_device(shape.variant)}) return false;
  }
  return true;
}

Proposer::LeastMemory Proposer::least_memory(const Shape& shape, const GroupClass& group) {
  const Cluster& group_cluster = device_classes_.cluster(group.device_class);
  const ChainSums& sums = sums_.of(shape);
  const auto devices = static_cast<int>(group_cluster.devices.size());
  const Placement placement = placement_of(shape.variant);
  const std::vector<LayerSpan> spans = sums_.spans_of(group.cuts);
  std::vector<Bytes> needed(group_cluster.devices.size());
  const int whole = group.share - (group.has_short ? 1 : 0);
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const int stage = static_cast<int>(s);
    const int stages = static_cast<int>(spans.size());
    InFlight surely{std::min(whole, 1), std::min(whole, 1)};
    if (!recomputes(shape.variant, stage, stages)) {
      surely = known_in_flight(shape.variant, whole, stages, stage).value_or(surely);
    }
    needed[static_cast<std::size_t>(device_of_stage(placement, devices, 0, stage))] +=
        sums.parameters(spans[s]) + sums.optimizer(spans[s]) + sums.updated_parameters(spans[s]) +
        (stages_per_device(shape.variant) == 1 ? stash_in_flight(sums, spans[s], surely) : Bytes{});
  }
  LeastMemory worst;
  for (std::size_t d = 0; d < needed.size(); ++d) {
    const Bytes available = group_cluster.devices[d].memory_limit;
    if (d > 0 && needed[d] - available <= worst.needed - worst.available) continue;
    worst = {static_cast<int>(d), needed[d], available};
  }
  return worst;
}

std::optional<Proposer::LeastMemory> Proposer::find_hopeless(const Shape& shape,
                                                             const GroupClass& group) {
  const Cluster& group_cluster = device_classes_.cluster(group.device_class);
  const ChainSums& sums = sums_.of(shape);
  const LayerSpan all{0, space_.layers};
  const bool whole = group.share > (group.has_short ? 1 : 0);
  // Each stage alone on its device holds the stash of one micro-batch at the least.
  const bool stashes = whole && stages_per_device(shape.variant) == 1;
  // Each direction holds the model; only the middle one of an odd number of devices has one stage
  // for both. One direction has the most gradient sets, and the other has one set at least.
  const bool apart = group_cluster.devices.size() % 2 == 0;
  const int ways = apart ? directions(placement_of(shape.variant)) : 1;
  const Bytes held = sums.parameters(all) * ways + sums.optimizer(all) * ways +
                     sums.updated_parameters(all) * (group.gradient_sets + ways - 1) +
                     (stashes ? sums.stash(all) : Bytes{});
  Bytes available;
  for (const Device& device : group_cluster.devices) available += device.memory_limit;
  if (held <= available) return std::nullopt;
  const auto devices = static_cast<std::int64_t>(group_cluster.devices.size());
  return LeastMemory{0, Bytes{divide_up<std::int64_t>(held.count, devices)},
                     Bytes{available.count / devices}};
}

}  // namespace frazil
