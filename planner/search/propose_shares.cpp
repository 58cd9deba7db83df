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
  struct Like {
    int device_class = 0;
    std::int64_t groups = 0;
    std::int64_t load = 1;  // the bottleneck
    std::int64_t share = 0;
    bool ends_next = false;  // right after the time until which all are dealt
  };
  std::vector<Like> classes;  // that differ
  const auto find = [&](int device_class) {
    return std::find_if(classes.begin(), classes.end(),
                        [&](const Like& own) { return own.device_class == device_class; });
  };
  auto like = classes.end();
  for (const DeviceGroup& group : groups) {
    if (like == classes.end() || like->device_class != group.device_class) {
      like = find(group.device_class);
      if (like == classes.end())
        like = classes.insert(like, Like{.device_class = group.device_class});
    }
    ++like->groups;
  }
  for (Like& own : classes) own.load = bottleneck_of(shape, own.device_class);
  // Each next micro-batch goes to the group that would end first. So there is a time until which
  // each group has as many as it can end; the few that are left go to the groups that would end
  // right after that time, in their order, or from the last group on if the last micro-batch is a
  // short one.
  const std::int64_t units = all / ways;
  const auto dealt = [&](std::int64_t time) {
    std::int64_t sum = 0;
    for (const Like& own : classes) sum += own.groups * (time / own.load);
    return sum;
  };
  std::int64_t time = 0;
  std::int64_t too_late =
      (units + 1) *
      std::min_element(classes.begin(), classes.end(), [](const Like& a, const Like& b) {
        return a.load < b.load;
      })->load;
  while (too_late - time > 1) {
    const std::int64_t middle = time + (too_late - time) / 2;
    (dealt(middle) <= units ? time : too_late) = middle;
  }
  std::int64_t left = units - dealt(time);
  for (Like& own : classes) {
    own.share = time / own.load;
    own.ends_next = too_late % own.load == 0;
  }
  std::vector<int> shares(groups.size());
  const bool has_short = space_.options.batch_size % shape.cell.micro_batch_size != 0;
  like = classes.begin();
  for (std::size_t place = 0; place < shares.size(); ++place) {
    const std::size_t g = has_short && all % ways == 0 ? shares.size() - 1 - place : place;
    if (like->device_class != groups[g].device_class) like = find(groups[g].device_class);
    const bool next = left > 0 && like->ends_next;
    shares[g] = static_cast<int>(ways * (like->share + (next ? 1 : 0)));
    if (next) --left;
  }
  shares.back() += all % ways;
  return shares;
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
  // Variants whose bottlenecks are in like proportions get the same shares, and those of a cell
  // come one after the other.
  std::vector<int> shares = share_by_load(shape, groups);
  const int ways = directions(placement_of(shape.variant));
  const LoadedKey key{shape.cell, shape.variant.arrangement, ways};
  if (loaded_.key != key) loaded_ = {key, {}};
  std::vector<Proposal>& known = loaded_.deals;
  auto same = std::find_if(known.begin(), known.end(),
                           [&](const Proposal& other) { return other.shares == shares; });
  if (same == known.end()) {
    known.push_back(classify(shape, groups, std::move(shares)));
    same = known.end() - 1;
  }
  Proposal proposal = *same;
  add_cuts(shape, proposal);
  return proposal;
}

// Puts groups that are alike into one class, without their cuts.
Proposal Proposer::classify(const Shape& shape, const DeviceGroups& groups,
                            std::vector<int> shares) {
  Proposal proposal;
  proposal.class_of.reserve(groups.size());
  const int ways = directions(placement_of(shape.variant));
  const int all = space_.micro_batches(shape.cell.micro_batch_size);
  const bool some_short = space_.options.batch_size % shape.cell.micro_batch_size != 0;
  const bool exact = space_.options.reduction == ReductionMode::kExact;
  std::vector<GroupClass>& classes = proposal.classes;
  auto same = classes.end();
  int first = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const int share = shares[g];
    const GroupClass own{
        groups[g].device_class, 1, share, some_short && share > 0 && first + share == all, 1, {}};
    const auto is_like = [&](const GroupClass& other) {
      return std::tie(other.device_class, other.share, other.has_short) ==
             std::tie(own.device_class, own.share, own.has_short);
    };
    // Mostly a group is like the one before.
    if (same == classes.end() || !is_like(*same)) {
      same = std::find_if(classes.begin(), classes.end(), is_like);
    }
    if (same == classes.end()) {
      same = classes.insert(same, own);
    } else {
      ++same->groups;
    }
    proposal.class_of.push_back(static_cast<int>(same - classes.begin()));
    if (exact) {
      // Two directions get a half each (split_share()).
      const int middle = first + (ways == 1 ? 0 : share / 2);
      for (const TreeNode& owned : {TreeNode{first, middle}, TreeNode{middle, first + share}}) {
        const IntervalCover cover = cover_interval(owned, all);
        same->gradient_sets = std::max(same->gradient_sets, cover.sets);
        proposal.most_nodes = std::max(proposal.most_nodes, cover.nodes);
      }
    }
    first += share;
  }
  proposal.shares = std::move(shares);
  return proposal;
}

}  // namespace frazil
