// The part of Proposer that finds the cuts of a shape.
#include "planner/search/propose.h"

#include <algorithm>
#include <set>

#include "profiles/error.h"

namespace frazil {

Proposer::Proposer(const SearchSpace& space, const SpaceSums& sums,
                   DeviceGroupClasses& device_classes, Bytes input_per_sample)
    : space_(space),
      sums_(sums),
      device_classes_(device_classes),
      input_per_sample_(input_per_sample) {}

int Proposer::joined_layers(const Shape& shape) const {
  return shape.variant.cached ? space_.cached - 1 : 0;
}

ChainCosts Proposer::make_costs(const Shape& shape, const Cluster& group_cluster,
                                Transfers transfers) const {
  const ChainSums& sums = sums_.of(shape);
  const auto devices = static_cast<int>(group_cluster.devices.size());
  const int stages = devices * shape.variant.chunks;
  const Placement placement = placement_of(shape.variant);
  const int joined = joined_layers(shape);
  ChainCosts costs;
  costs.layer.push_back(sums.work({0, joined + 1}, shape.variant.recompute));
  for (int l = joined + 1; l < sums.layers(); ++l) {
    costs.layer.push_back(sums.work({l, l + 1}, shape.variant.recompute));
  }
  std::vector<DeviceId> device_of;
  std::set<std::pair<DeviceId, DeviceId>> hops;
  for (int s = 0; s < stages; ++s) {
    device_of.emplace_back(device_of_stage(placement, devices, 0, s));
    costs.time_ppm.push_back(group_cluster.devices[device_of.back().index()].time_ppm);
    const std::size_t at = device_of.size() - 1;
    if (s > 0 && device_of[at - 1] != device_of[at]) hops.emplace(device_of[at - 1], device_of[at]);
  }
  // A boundary takes as long as on the slowest link between neighbouring stages. A message that is
  // on its way keeps no device from sending the next one.
  std::vector<std::pair<Link, Link>> links;
  for (const auto& [from, to] : hops) {
    const std::pair<Link, Link> ways{group_cluster.link(from, to), group_cluster.link(to, from)};
    if (std::find(links.begin(), links.end(), ways) == links.end()) links.push_back(ways);
  }
  const bool blocking = transfers == Transfers::kBlocking;
  for (int cut = joined + 1; cut < sums.layers(); ++cut) {
    Duration down{0};
    Duration up{0};
    Duration both{0};
    for (const auto& [there, back] : links) {
      const Duration sent = sums.down(cut) / there.bandwidth;
      const Duration returned = sums.up(cut) / back.bandwidth;
      const Duration hop_back = sums.up(cut).count > 0 ? back.latency : Duration{0};
      down = std::max(down, sent);
      up = std::max(up, returned);
      both = std::max(both, sent + there.latency + returned + hop_back);
    }
    costs.boundary.push_back(blocking ? both : down);
    if (!blocking) costs.back.push_back(up);
  }
  return costs;
}

// Adds the memory of each stage. Stages that hold equally many micro-batches under equal limits,
// and recompute alike, have the same memory for the same layers.
void Proposer::add_memory(const Shape& shape, const GroupClass& group, MemoryRule rule,
                          ChainCosts& costs) const {
  const ShapeVariant& variant = shape.variant;
  const Cluster& group_cluster = device_classes_.cluster(group.device_class);
  const auto devices = static_cast<int>(group_cluster.devices.size());
  const int stages = devices * variant.chunks;
  const ChainSums& sums = sums_.of(shape);
  const bool all_until_weight = sums.stash_until_input({0, sums.layers()}).count == 0;
  std::vector<InFlight> in_flight;
  for (int s = 0; s < stages; ++s) {
    const auto at = static_cast<std::size_t>(s);
    const int device = device_of_stage(placement_of(variant), devices, 0, s);
    const Bytes limit = group_cluster.devices[static_cast<std::size_t>(device)].memory_limit;
    costs.memory_limit.push_back(Bytes{limit.count / stages_per_device(variant)});
    in_flight.push_back(most_in_flight(variant, group.share, stages, s));
    if (all_until_weight) in_flight.back().until_input = 0;
    const bool again = s > 0 && in_flight[at] == in_flight[at - 1] &&
                       costs.memory_limit[at] == costs.memory_limit[at - 1] &&
                       recomputes(variant, s, stages) == recomputes(variant, s - 1, stages);
    costs.memory_like.push_back(again ? costs.memory_like.back() : s);
  }
  const Bytes receive = rule == MemoryRule::kWithLargestReceive ? sums.largest_down() : Bytes{};
  const int joined = joined_layers(shape);
  costs.memory = [this, &sums, variant, receive, joined, in_flight, sets = group.gradient_sets](
                     int stage, int of, int first, int last) {
    const LayerSpan span{first == 0 ? 0 : first + joined, last + joined + 1};
    return held(sums, span, sets, in_flight[static_cast<std::size_t>(stage)],
                recomputes(variant, stage, of)) +
           receive;
  };
}

const std::optional<ChainPartition>& Proposer::part(const Shape& shape, const GroupClass& group,
                                                    MemoryRule rule, Transfers transfers) {
  const bool ignored = rule == MemoryRule::kIgnored;
  Shape like = shape;
  ShapeVariant& variant = like.variant;
  variant.arrangement = 0;
  // Schedules of one placement are alike if memory does not matter, or if all of a share is held.
  const bool known_depth = known_in_flight(variant, group.share, 1, 0).has_value();
  if (!facts_of(variant.schedule).recomputes_itself && (ignored || !known_depth)) {
    variant.in_flight = std::nullopt;
    variant.schedule = example_of(placement_of(variant));
  }
  const CutKey key{shape.cell.micro_batch_size,
                   group.device_class,
                   variant,
                   rule,
                   transfers,
                   ignored ? 0 : group.share,
                   ignored ? 0 : group.gradient_sets};
  const auto [known, is_new] = cuts_.try_emplace(key);
  if (!is_new) return known->second;
  const Cluster& group_cluster = device_classes_.cluster(group.device_class);
  ChainCosts costs = make_costs(like, group_cluster, transfers);
  if (!ignored) add_memory(like, group, rule, costs);
  known->second =
      partition_into(costs, static_cast<int>(group_cluster.devices.size()) * variant.chunks);
  if (known->second) {
    for (LayerId& cut : known->second->cuts) cut.value += joined_layers(shape);
  }
  return known->second;
}

const std::vector<LayerId>* Proposer::find_cuts(const Shape& shape, const GroupClass& group,
                                                MemoryRule rule, Transfers transfers) {
  const auto& free = part(shape, group, MemoryRule::kIgnored, transfers);
  ENSURE(free.has_value(), "without memory limits every chain can be cut");
  if (rule == MemoryRule::kIgnored || keeps(shape, group, free->cuts, rule)) return &free->cuts;
  const auto& found = part(shape, group, rule, transfers);
  return found ? &found->cuts : nullptr;
}

void Proposer::add_cuts(const Shape& shape, Proposal& proposal) {
  for (GroupClass& group : proposal.classes) {
    group.cuts = *find_cuts(shape, group, MemoryRule::kIgnored, Transfers::kBlocking);
  }
}

Proposer::CutsOfClasses Proposer::find_cuts(const Shape& shape, const Proposal& dealt,
                                            MemoryRule rule, Transfers transfers) {
  CutsOfClasses cuts;
  for (const GroupClass& group : dealt.classes) {
    cuts.push_back(find_cuts(shape, group, rule, transfers));
    if (cuts.back() == nullptr) return {};
  }
  return cuts;
}

std::vector<Proposal> Proposer::propose(const Shape& shape) {
  const Proposal& dealt = deal(shape);
  std::vector<CutsOfClasses> all;
  const auto add = [&](CutsOfClasses cuts) {
    const auto is_same = [&](const CutsOfClasses& other) {
      return std::equal(cuts.begin(), cuts.end(), other.begin(), other.end(),
                        [](const auto* a, const auto* b) { return *a == *b; });
    };
    if (!cuts.empty() && std::none_of(all.begin(), all.end(), is_same)) {
      all.push_back(std::move(cuts));
    }
  };
  for (const Transfers transfers : {Transfers::kBlocking, Transfers::kOverlapped}) {
    if (transfers == Transfers::kOverlapped && !space_.options.overlapped_cuts) continue;
    // Cuts that keep the strictest rule are the same under all: then there is one proposal.
    for (const MemoryRule rule :
         {MemoryRule::kWithLargestReceive, MemoryRule::kWithoutReceive, MemoryRule::kIgnored}) {
      add(find_cuts(shape, dealt, rule, transfers));
    }
  }
  std::vector<Proposal> proposals;
  for (const CutsOfClasses& cuts : all) {
    Proposal& proposal = proposals.emplace_back(dealt);
    for (std::size_t c = 0; c < cuts.size(); ++c) proposal.classes[c].cuts = *cuts[c];
  }
  return proposals;
}

std::optional<Proposal> Proposer::read(const Shape& shape, const Plan& plan) {
  const DeviceGroups& groups = device_classes_.groups(shape.cell, shape.variant.arrangement);
  const auto ways = static_cast<std::size_t>(directions(placement_of(shape.variant)));
  if (plan.pipelines.size() != groups.size() * ways) return std::nullopt;
  std::vector<int> shares;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    int share = 0;
    for (std::size_t way = 0; way < ways; ++way) {
      for (const MicroBatches& owned : plan.pipelines[g * ways + way].micro_batches) {
        share += owned.count();
      }
    }
    shares.push_back(share);
  }
  Proposal proposal = classify(shape, groups, std::move(shares));
  for (std::size_t g = groups.size(); g-- > 0;) {
    std::vector<LayerId> cuts;
    const std::vector<Stage>& stages = plan.pipelines[g * ways].stages;
    for (std::size_t s = 1; s < stages.size(); ++s) cuts.push_back(stages[s].layers.front().first);
    proposal.classes[static_cast<std::size_t>(proposal.class_of[g])].cuts = std::move(cuts);
  }
  return proposal;
}

}  // namespace frazil
