// The part of Proposer that deals the micro-batches.
#include "planner/search/propose.h"

#include <algorithm>

#include "planner/bounds/batch_deals.h"
#include "planner/bounds/variant_memory.h"
#include "profiles/error.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {

std::vector<int> Proposer::share_equally(const Shape& shape) const {
  const int ways = directions(placement_of(shape.variant));
  const int all = space_.micro_batches(shape.cell.micro_batch_size);
  const int parts = shape.cell.replicas;
  const int units = all / ways;
  std::vector<int> shares;
  shares.reserve(static_cast<std::size_t>(parts));
  const bool has_short = space_.options.batch_size % shape.cell.micro_batch_size != 0;
  for (int g = 0; g < parts; ++g) {
    shares.push_back(ways * equal_share(units, parts, g, has_short && all % ways == 0));
  }
  shares.back() += all % ways;
  return shares;
}

std::int64_t Proposer::bottleneck_of(const Shape& shape, int device_class) {
  const Placement placement = placement_of(shape.variant);
  const auto [known, is_new] =
      bottlenecks_.try_emplace({shape.cell.micro_batch_size, device_class, shape.variant.chunks,
                                placement, shape.variant.recompute, shape.variant.cached});
  if (!is_new) return known->second;
  GroupClass alone;
  alone.device_class = device_class;
  const auto* cuts = find_cuts(shape, alone, MemoryRule::kIgnored, Transfers::kBlocking);
  const Cluster& group_cluster = device_classes_.cluster(device_class);
  const auto devices = static_cast<int>(group_cluster.devices.size());
  const ChainSums& sums = sums_.of(shape);
  std::vector<std::int64_t> work(group_cluster.devices.size(), 0);
  const std::vector<LayerSpan> spans = sums_.spans_of(*cuts);
  for (int way = 0; way < directions(placement); ++way) {
    for (std::size_t s = 0; s < spans.size(); ++s) {
      const auto device =
          static_cast<std::size_t>(device_of_stage(placement, devices, way, static_cast<int>(s)));
      work[device] += scale_ppm(sums.work(spans[s], shape.variant.recompute),
                                group_cluster.devices[device].time_ppm)
                          .count();
    }
  }
  return known->second = std::max<std::int64_t>(1, *std::max_element(work.begin(), work.end()));
}

std::vector<int> Proposer::share_by_load(const Shape& shape, const DeviceGroups& groups) {
  const int ways = directions(placement_of(shape.variant));
  const int all = space_.micro_batches(shape.cell.micro_batch_size);
  std::vector<int> classes;          // that differ
  std::vector<std::size_t> kind_of;  // by group
  for (const DeviceGroup& group : groups) {
    const auto known = std::find(classes.begin(), classes.end(), group.device_class);
    kind_of.push_back(static_cast<std::size_t>(known - classes.begin()));
    if (known == classes.end()) classes.push_back(group.device_class);
  }
  std::vector<std::int64_t> load_of;  // by class: its bottleneck
  load_of.reserve(classes.size());
  for (const int device_class : classes) load_of.push_back(bottleneck_of(shape, device_class));
  std::vector<std::int64_t> groups_of(load_of.size(), 0);  // by class
  for (const std::size_t kind : kind_of) ++groups_of[kind];
  // Each next micro-batch goes to the group that would end first. So there is a time until which
  // each group has as many as it can end; the few that are left go to the groups that would end
  // right after that time, in their order, or from the last group on if the last micro-batch is a
  // short one.
  const std::int64_t units = all / ways;
  const auto dealt = [&](std::int64_t time) {
    std::int64_t sum = 0;
    for (std::size_t m = 0; m < load_of.size(); ++m) sum += groups_of[m] * (time / load_of[m]);
    return sum;
  };
  std::int64_t time = 0;
  std::int64_t too_late = (units + 1) * *std::min_element(load_of.begin(), load_of.end());
  while (too_late - time > 1) {
    const std::int64_t middle = time + (too_late - time) / 2;
    (dealt(middle) <= units ? time : too_late) = middle;
  }
  std::int64_t left = units - dealt(time);
  std::vector<int> shares(kind_of.size());
  const bool has_short = space_.options.batch_size % shape.cell.micro_batch_size != 0;
  for (std::size_t place = 0; place < shares.size(); ++place) {
    const std::size_t g = has_short && all % ways == 0 ? shares.size() - 1 - place : place;
    const std::int64_t load = load_of[kind_of[g]];
    const bool next = left > 0 && too_late % load == 0;
    shares[g] = static_cast<int>(ways * (time / load + (next ? 1 : 0)));
    if (next) --left;
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

const Proposal& Proposer::deal(const Shape& shape) {
  const Placement placement = placement_of(shape.variant);
  const DealKey key{shape.cell, shape.variant.arrangement, shape.variant.chunks,
                    placement,  shape.variant.recompute,   shape.variant.cached};
  const auto [known, is_new] = deals_.try_emplace(key);
  Proposal& proposal = known->second;
  if (!is_new) return proposal;
  const DeviceGroups& groups = device_classes_.groups(shape.cell, shape.variant.arrangement);
  for (const DeviceGroup& group : groups) {
    if (group.device_class != groups.front().device_class) {
      return proposal = deal_by_load(shape, groups);
    }
  }
  // What equal groups are dealt depends on their number alone.
  const EqualKey equal{shape.cell.micro_batch_size, shape.cell.replicas, directions(placement)};
  const auto [place, is_first] = equal_deals_.try_emplace(equal);
  if (is_first) place->second = classify(shape, groups, share_equally(shape));
  proposal = place->second;
  for (GroupClass& group : proposal.classes) group.device_class = groups.front().device_class;
  add_cuts(shape, proposal);
  return proposal;
}

Proposal Proposer::deal_by_load(const Shape& shape, const DeviceGroups& groups) {
  Proposal proposal = classify(shape, groups, share_by_load(shape, groups));
  add_cuts(shape, proposal);
  return proposal;
}

// Puts groups that are alike into one class, without their cuts.
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
        groups[g].device_class, 1, share, some_short && share > 0 && first + share == all, 1, {}};
    for (const MicroBatches& owned : split_share(first, share, ways)) {
      if (!exact || owned.count() <= 0) continue;
      const GradientTree& tree = find_gradients(owned, all);
      own.gradient_sets = std::max(own.gradient_sets, tree.sets);
      proposal.most_nodes = std::max(proposal.most_nodes, tree.nodes);
    }
    first += share;
    const auto same = std::find_if(
        proposal.classes.begin(), proposal.classes.end(), [&](const GroupClass& other) {
          return std::tie(other.device_class, other.share, other.has_short) ==
                 std::tie(own.device_class, own.share, own.has_short);
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

}  // namespace frazil
