#include "planner/search/propose.h"

#include <algorithm>
#include <set>

#include "planner/search/variant_memory.h"
#include "profiles/error.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {

std::vector<MicroBatches> split_share(int first, int share, int directions) {
  if (directions == 1) return {{MicroBatchId{first}, MicroBatchId{first + share - 1}}};
  const int half = share / 2;
  return {{MicroBatchId{first}, MicroBatchId{first + half - 1}},
          {MicroBatchId{first + half}, MicroBatchId{first + share - 1}}};
}

Proposer::Proposer(const SearchSpace& space, const std::vector<ChainSums>& sums, Machines& machines,
                   Bytes input_per_sample)
    : space_(space), sums_(sums), machines_(machines), input_per_sample_(input_per_sample) {}

const ChainSums& Proposer::sums_of(int micro_batch_size) const {
  const auto& sizes = space_.options.micro_batch_sizes;
  const auto place = std::find(sizes.begin(), sizes.end(), micro_batch_size);
  return sums_[static_cast<std::size_t>(place - sizes.begin())];
}

std::vector<LayerSpan> Proposer::spans_of(const std::vector<LayerId>& cuts) const {
  std::vector<LayerSpan> spans;
  int first = 0;
  for (const LayerId cut : cuts) {
    spans.push_back({first, cut.value});
    first = cut.value;
  }
  spans.push_back({first, space_.layers});
  return spans;
}

ChainCosts Proposer::make_costs(const Shape& shape, const Cluster& machine) const {
  const ChainSums& sums = sums_of(shape.cell.micro_batch_size);
  const auto devices = static_cast<int>(machine.devices.size());
  const int stages = devices * shape.variant.chunks;
  const Placement placement = placement_of(shape.variant);
  ChainCosts costs;
  for (int l = 0; l < sums.layers(); ++l) {
    costs.layer.push_back(sums.work({l, l + 1}, shape.variant.recompute));
  }
  std::vector<DeviceId> device_of;
  std::set<std::pair<DeviceId, DeviceId>> hops;
  for (int s = 0; s < stages; ++s) {
    device_of.emplace_back(device_of_stage(placement, devices, 0, s));
    costs.time_ppm.push_back(machine.devices[device_of.back().index()].time_ppm);
    const std::size_t at = device_of.size() - 1;
    if (s > 0 && device_of[at - 1] != device_of[at]) hops.emplace(device_of[at - 1], device_of[at]);
  }
  // A boundary takes as long as on the slowest link between neighbouring stages.
  std::vector<std::pair<Link, Link>> links;
  for (const auto& [from, to] : hops) {
    const std::pair<Link, Link> ways{machine.link(from, to), machine.link(to, from)};
    if (std::find(links.begin(), links.end(), ways) == links.end()) links.push_back(ways);
  }
  for (int cut = 1; cut < sums.layers(); ++cut) {
    Duration slowest{0};
    for (const auto& [there, back] : links) {
      Duration time = sums.down(cut) / there.bandwidth + there.latency;
      if (sums.up(cut).count > 0) time += sums.up(cut) / back.bandwidth + back.latency;
      slowest = std::max(slowest, time);
    }
    costs.boundary.push_back(slowest);
  }
  return costs;
}

// A stage that recomputes keeps its inputs, and the whole stash of one micro-batch at a time.
Bytes Proposer::held(const ChainSums& sums, LayerSpan span, int sets, int in_flight,
                     bool recompute) const {
  const Bytes stash = sums.stash(span);
  Bytes kept = stash * in_flight;
  if (recompute) {
    const Bytes input = std::min(
        stash,
        std::max(sums.largest_down(), Bytes{input_per_sample_.count * sums.micro_batch_size()}));
    kept = input * in_flight + (stash - input);
  }
  return sums.parameters(span) + sums.optimizer(span) + sums.updated_parameters(span) * sets + kept;
}

bool Proposer::keeps(const Shape& shape, const GroupClass& group, const std::vector<LayerId>& cuts,
                     MemoryRule rule) const {
  const Cluster& machine = machines_.machine(group.machine);
  const auto devices = static_cast<int>(machine.devices.size());
  const std::vector<LayerSpan> spans = spans_of(cuts);
  const auto stages = static_cast<int>(spans.size());
  const Bytes receive = rule == MemoryRule::kWithLargestReceive
                            ? sums_of(shape.cell.micro_batch_size).largest_down()
                            : Bytes{};
  for (int s = 0; s < stages; ++s) {
    const int device = device_of_stage(placement_of(shape.variant), devices, 0, s);
    const Bytes limit = machine.devices[static_cast<std::size_t>(device)].memory_limit;
    const int in_flight = most_in_flight(shape.variant, group.share, stages, s);
    const Bytes needed =
        held(sums_of(shape.cell.micro_batch_size), spans[static_cast<std::size_t>(s)],
             group.gradient_sets, in_flight, recomputes(shape.variant, s, stages)) +
        receive;
    if (needed > Bytes{limit.count / stages_per_device(shape.variant)}) return false;
  }
  return true;
}

std::optional<std::vector<LayerId>> Proposer::find_cuts(const Shape& shape, const GroupClass& group,
                                                        MemoryRule rule) {
  if (rule != MemoryRule::kIgnored && keeps(shape, group, group.cuts, rule)) return group.cuts;
  const bool ignored = rule == MemoryRule::kIgnored;
  ShapeVariant variant = shape.variant;
  variant.arrangement = 0;
  // Where memory does not matter, or all of a share is held, schedules of one placement are alike.
  const bool known_depth = known_in_flight(variant, group.share, 1, 0).has_value();
  if (variant.schedule != ScheduleKind::kVaruna && (ignored || !known_depth)) {
    variant.in_flight = std::nullopt;
    variant.schedule = ignored ? example_of(placement_of(variant)) : alike(variant);
  }
  const CutKey key{
      shape.cell.micro_batch_size,      group.machine, variant, rule, ignored ? 0 : group.share,
      ignored ? 0 : group.gradient_sets};
  const auto [known, is_new] = cuts_.try_emplace(key);
  if (is_new) {
    const Cluster& machine = machines_.machine(group.machine);
    ChainCosts costs = make_costs(shape, machine);
    const auto devices = static_cast<int>(machine.devices.size());
    const int stages = devices * variant.chunks;
    if (!ignored) {
      const int shared = stages_per_device(variant);
      for (int s = 0; s < stages; ++s) {
        const int device = device_of_stage(placement_of(variant), devices, 0, s);
        const Bytes limit = machine.devices[static_cast<std::size_t>(device)].memory_limit;
        costs.memory_limit.push_back(Bytes{limit.count / shared});
      }
      const Bytes receive = rule == MemoryRule::kWithLargestReceive
                                ? sums_of(shape.cell.micro_batch_size).largest_down()
                                : Bytes{};
      std::vector<int> in_flight;
      for (int stage = 0; stage < stages; ++stage) {
        in_flight.push_back(most_in_flight(variant, group.share, stages, stage));
      }
      const ChainSums& sums = sums_of(shape.cell.micro_batch_size);
      costs.memory = [&, receive, in_flight](int stage, int of, int first, int last) {
        return held(sums, {first, last + 1}, group.gradient_sets,
                    in_flight[static_cast<std::size_t>(stage)], recomputes(variant, stage, of)) +
               receive;
      };
    }
    known->second = partition_into(costs, stages);
  }
  if (!known->second) return std::nullopt;
  return known->second->cuts;
}

std::vector<int> Proposer::share_equally(const Shape& shape) const {
  const int ways = directions(placement_of(shape.variant));
  const int all = space_.micro_batches(shape.cell.micro_batch_size);
  const int parts = shape.cell.replicas;
  const int units = all / ways;
  std::vector<int> shares;
  for (int g = 0; g < parts; ++g) {
    shares.push_back(ways * (units / parts + (g < units % parts ? 1 : 0)));
  }
  shares.back() += all % ways;
  return shares;
}

std::vector<int> Proposer::share_by_load(const Shape& shape, const DeviceGroups& groups) {
  const int ways = directions(placement_of(shape.variant));
  const int all = space_.micro_batches(shape.cell.micro_batch_size);
  const ChainSums& sums = sums_of(shape.cell.micro_batch_size);
  std::map<int, std::int64_t> load_of;  // by machine: its bottleneck
  for (const DeviceGroup& group : groups) {
    if (load_of.count(group.machine) > 0) continue;
    GroupClass alone;
    alone.machine = group.machine;
    const auto cuts = find_cuts(shape, alone, MemoryRule::kIgnored);
    ENSURE(cuts.has_value(), "without memory limits every chain can be cut");
    const Cluster& machine = machines_.machine(group.machine);
    const auto devices = static_cast<int>(machine.devices.size());
    std::vector<std::int64_t> work(machine.devices.size(), 0);
    const std::vector<LayerSpan> spans = spans_of(*cuts);
    for (int way = 0; way < ways; ++way) {
      for (std::size_t s = 0; s < spans.size(); ++s) {
        const auto device = static_cast<std::size_t>(
            device_of_stage(placement_of(shape.variant), devices, way, static_cast<int>(s)));
        work[device] += slow_down(sums.work(spans[s], shape.variant.recompute),
                                  machine.devices[device].time_ppm)
                            .count();
      }
    }
    load_of[group.machine] = std::max<std::int64_t>(1, *std::max_element(work.begin(), work.end()));
  }
  std::vector<int> shares(groups.size(), 0);
  // Groups that are alike get their next ones at the same time, the first groups first.
  std::map<int, std::int64_t> end_of = load_of;  // by machine: after one more
  for (int left = all / ways; left > 0;) {
    std::int64_t next = end_of.begin()->second;
    for (const auto& [machine, end] : end_of) next = std::min(next, end);
    for (std::size_t g = 0; g < groups.size() && left > 0; ++g) {
      if (end_of[groups[g].machine] != next) continue;
      shares[g] += ways;
      --left;
    }
    for (auto& [machine, end] : end_of) end += end == next ? load_of[machine] : 0;
  }
  shares.back() += all % ways;
  return shares;
}

const Proposer::GradientTree& Proposer::find_gradients(const MicroBatches& owned, int all) {
  const int end = owned.last.value + 1;
  const auto key = static_cast<std::uint64_t>(all) << 42 |
                   static_cast<std::uint64_t>(owned.first.value) << 21 |
                   static_cast<std::uint64_t>(end);
  const auto [known, is_new] = gradients_.try_emplace(key);
  if (is_new) {
    const std::vector<TreeNode> interval{{owned.first.value, end}};
    known->second.sets = held_gradient_sets(interval, all);
    known->second.nodes = static_cast<int>(maximal_nodes(interval, all).size());
  }
  return known->second;
}

Owners Proposer::owners_of(const Shape& shape, const Proposal& proposal) const {
  const int ways = directions(placement_of(shape.variant));
  // Of an odd number of devices the one in the middle has a stage both ways.
  const bool apart = ways == 1 || (shape.cell.devices % 2 == 0 && shape.cell.longer == 0);
  if (!apart) return {shape.cell.replicas, 1};
  return {shape.cell.replicas * ways, proposal.most_nodes};
}

const Proposal& Proposer::deal(const Shape& shape) {
  const Placement placement = placement_of(shape.variant);
  const DealKey key{shape.cell, shape.variant.arrangement, shape.variant.chunks, placement,
                    shape.variant.recompute};
  const auto [known, is_new] = deals_.try_emplace(key);
  Proposal& proposal = known->second;
  if (!is_new) return proposal;
  const DeviceGroups& groups = machines_.groups(shape.cell, shape.variant.arrangement);
  for (const DeviceGroup& group : groups) {
    if (group.machine != groups.front().machine) return proposal = deal_by_load(shape, groups);
  }
  // What equal groups are dealt depends on their number alone.
  const EqualKey equal{shape.cell.micro_batch_size, shape.cell.replicas, directions(placement)};
  const auto [place, is_first] = equal_deals_.try_emplace(equal);
  if (is_first) place->second = classify(shape, groups, share_equally(shape));
  proposal = place->second;
  for (GroupClass& group : proposal.classes) group.machine = groups.front().machine;
  add_cuts(shape, proposal);
  return proposal;
}

Proposal Proposer::deal_by_load(const Shape& shape, const DeviceGroups& groups) {
  Proposal proposal = classify(shape, groups, share_by_load(shape, groups));
  add_cuts(shape, proposal);
  return proposal;
}

void Proposer::add_cuts(const Shape& shape, Proposal& proposal) {
  for (GroupClass& group : proposal.classes) {
    group.cuts = *find_cuts(shape, group, MemoryRule::kIgnored);
  }
}

// Groups of one class, without their cuts.
Proposal Proposer::classify(const Shape& shape, const DeviceGroups& groups,
                            std::vector<int> shares) {
  Proposal proposal;
  const int ways = directions(placement_of(shape.variant));
  const int all = space_.micro_batches(shape.cell.micro_batch_size);
  const bool some_short = space_.options.batch_size % shape.cell.micro_batch_size != 0;
  const bool exact = space_.options.reduction == ReductionMode::kExact;
  int first = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const int share = shares[g];
    GroupClass own{
        groups[g].machine, 1, share, some_short && share > 0 && first + share == all, 1, {}};
    for (const MicroBatches& owned : split_share(first, share, ways)) {
      if (!exact || owned.count() <= 0) continue;
      const GradientTree& tree = find_gradients(owned, all);
      own.gradient_sets = std::max(own.gradient_sets, tree.sets);
      proposal.most_nodes = std::max(proposal.most_nodes, tree.nodes);
    }
    first += share;
    const auto same = std::find_if(proposal.classes.begin(), proposal.classes.end(),
                                   [&](const GroupClass& other) {
                                     return std::tie(other.machine, other.share, other.has_short) ==
                                            std::tie(own.machine, own.share, own.has_short);
                                   });
    proposal.class_of.push_back(static_cast<int>(same - proposal.classes.begin()));
    if (same == proposal.classes.end()) {
      proposal.classes.push_back(std::move(own));
    } else {
      ++same->groups;
      same->gradient_sets = std::max(same->gradient_sets, own.gradient_sets);
    }
  }
  proposal.shares = std::move(shares);
  return proposal;
}

std::optional<Proposal> Proposer::propose(const Shape& shape, MemoryRule rule) {
  Proposal proposal = deal(shape);
  for (GroupClass& group : proposal.classes) {
    if (rule == MemoryRule::kIgnored) break;
    auto cuts = find_cuts(shape, group, rule);
    if (!cuts) return std::nullopt;
    group.cuts = std::move(*cuts);
  }
  return proposal;
}

bool Proposer::surely_fits(const Shape& shape, const GroupClass& group) {
  const ChainSums& sums = sums_of(shape.cell.micro_batch_size);
  const Cluster& machine = machines_.machine(group.machine);
  const auto devices = static_cast<int>(machine.devices.size());
  const Placement placement = placement_of(shape.variant);
  const std::vector<LayerSpan> spans = spans_of(group.cuts);
  std::vector<Bytes> needed(machine.devices.size());
  for (int way = 0; way < directions(placement); ++way) {
    for (std::size_t s = 0; s < spans.size(); ++s) {
      const int stage = static_cast<int>(s);
      const int in_flight =
          most_in_flight(shape.variant, group.share, static_cast<int>(spans.size()), stage);
      needed[static_cast<std::size_t>(device_of_stage(placement, devices, way, stage))] +=
          held(sums, spans[s], group.gradient_sets, in_flight, false) + sums.largest_down();
    }
  }
  for (std::size_t d = 0; d < needed.size(); ++d) {
    if (needed[d] > machine.devices[d].memory_limit) return false;
  }
  return true;
}

Proposer::LeastMemory Proposer::least_memory(const Shape& shape, const GroupClass& group) {
  const Cluster& machine = machines_.machine(group.machine);
  const ChainSums& sums = sums_of(shape.cell.micro_batch_size);
  const auto devices = static_cast<int>(machine.devices.size());
  const Placement placement = placement_of(shape.variant);
  const std::vector<LayerSpan> spans = spans_of(group.cuts);
  std::vector<Bytes> needed(machine.devices.size());
  const bool whole = group.share > (group.has_short ? 1 : 0);
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const int stage = static_cast<int>(s);
    const int stages = static_cast<int>(spans.size());
    int stashes = whole ? 1 : 0;
    if (!recomputes(shape.variant, stage, stages)) {
      const auto known = known_in_flight(shape.variant, group.share, stages, stage);
      stashes = std::max(stashes, known.value_or(0) - (group.has_short ? 1 : 0));
    }
    needed[static_cast<std::size_t>(device_of_stage(placement, devices, 0, stage))] +=
        sums.parameters(spans[s]) + sums.optimizer(spans[s]) + sums.updated_parameters(spans[s]) +
        (stages_per_device(shape.variant) == 1 ? sums.stash(spans[s]) * stashes : Bytes{});
  }
  LeastMemory worst;
  for (std::size_t d = 0; d < needed.size(); ++d) {
    const Bytes available = machine.devices[d].memory_limit;
    if (d > 0 && needed[d] - available <= worst.needed - worst.available) continue;
    worst = {static_cast<int>(d), needed[d], available};
  }
  return worst;
}

std::optional<Proposer::LeastMemory> Proposer::find_hopeless(const Shape& shape,
                                                             const GroupClass& group) {
  const Cluster& machine = machines_.machine(group.machine);
  const ChainSums& sums = sums_of(shape.cell.micro_batch_size);
  const LayerSpan all{0, space_.layers};
  const bool whole = group.share > (group.has_short ? 1 : 0);
  // Each stage alone on its device holds the stash of one micro-batch at the least.
  const bool stashes = whole && stages_per_device(shape.variant) == 1;
  // Each direction holds the model; the one with more gradient sets is not both.
  const int ways = directions(placement_of(shape.variant));
  const Bytes held = sums.parameters(all) * ways + sums.optimizer(all) * ways +
                     sums.updated_parameters(all) * (group.gradient_sets + ways - 1) +
                     (stashes ? sums.stash(all) : Bytes{});
  Bytes available;
  for (const Device& device : machine.devices) available += device.memory_limit;
  if (held <= available) return std::nullopt;
  const auto devices = static_cast<std::int64_t>(machine.devices.size());
  return LeastMemory{0, Bytes{held.count / devices + 1}, Bytes{available.count / devices}};
}

Plan make_plan(const Shape& shape, const Proposal& proposal, const DeviceGroups& groups,
               const SearchOptions& options, int layers) {
  Plan plan;
  plan.batch_size = options.batch_size;
  plan.micro_batch_size = shape.cell.micro_batch_size;
  plan.mask = options.mask;
  plan.reduction = options.reduction;
  plan.schedule = shape.variant.named();
  const Placement placement = placement_of(shape.variant);
  int first = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& cuts = proposal.classes[static_cast<std::size_t>(proposal.class_of[g])].cuts;
    const auto devices = static_cast<int>(groups[g].devices.size());
    const auto stages = static_cast<int>(cuts.size()) + 1;
    const auto shares = split_share(first, proposal.shares[g], directions(placement));
    first += proposal.shares[g];
    for (int way = 0; way < directions(placement); ++way) {
      std::vector<DeviceId> device_of;
      for (int s = 0; s < stages; ++s) {
        const int device = device_of_stage(placement, devices, way, s);
        device_of.push_back(groups[g].devices[static_cast<std::size_t>(device)]);
      }
      Pipeline pipeline =
          make_pipeline(layers, cuts, device_of, shares[static_cast<std::size_t>(way)]);
      for (int s = 0; s < stages; ++s) {
        if (!recomputes(shape.variant, s, stages)) continue;
        pipeline.stages[static_cast<std::size_t>(s)].memory = MemoryPolicy::kRecompute;
      }
      plan.pipelines.push_back(std::move(pipeline));
    }
  }
  return plan;
}

}  // namespace frazil
