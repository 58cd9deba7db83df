#include "planner/bounds/alike_tail.h"

#include <algorithm>
#include <set>

#include "planner/bounds/variant_memory.h"
#include "sim/collective_cost.h"

namespace frazil {
namespace {

// One group of a class.
struct AlikeGroup {
  std::vector<LayerSpan> spans;
  std::vector<std::size_t> device_of;  // by stage
  std::vector<Duration> ready;         // by stage: when its gradients are reduced
  std::vector<Duration> work;          // by device: the end of its last work
  std::vector<Duration> collective;    // by device: the end of its last collective
  std::size_t stage = 0;               // that holds the layers that are reduced next
};

class AlikeTail {
 public:
  AlikeTail(const Shape& shape, const Proposal& proposal, const ChainSums& sums,
            const Cluster& cluster, const SearchOptions& options)
      : proposal_(proposal), sums_(sums), cluster_(cluster) {
    const auto owners = static_cast<std::size_t>(shape.cell.replicas);
    // Only the number of owners and the most nodes of one make the cost.
    reduction_.devices.assign(owners, DeviceId{0});
    reduction_.kind = CollectiveKind::kRingAllReduce;
    if (options.reduction == ReductionMode::kFast) return;
    reduction_.kind = CollectiveKind::kExactTreeAllReduce;
    reduction_.owned.assign(owners, proposal.most_nodes);
  }

  void add(std::vector<LayerSpan> spans, std::vector<std::size_t> device_of,
           const std::vector<Duration>& work) {
    AlikeGroup& group = groups_.emplace_back();
    group.spans = std::move(spans);
    group.device_of = std::move(device_of);
    group.ready.assign(group.spans.size(), kNoTime);
    group.work = work;
    group.collective.assign(work.size(), kNoTime);
  }

  void reduce() {
    if (reduction_.devices.size() < 2) return;
    std::set<int> ends;
    for (const AlikeGroup& group : groups_) {
      for (const LayerSpan& span : group.spans) ends.insert(span.end);
    }
    int first = 0;
    for (const int end : ends) {
      reduce_layers({first, end});
      first = end;
    }
  }

  // Returns when the last device ends its updates.
  Duration update(const DeviceGroupClasses& device_classes, std::optional<Duration> round) const {
    Duration last{0};
    for (const AlikeGroup& group : groups_) {
      for (std::size_t d = 0; d < group.work.size(); ++d) {
        last = std::max({last, group.work[d], group.collective[d]});
      }
    }
    const Duration barrier = round ? last + *round : kNoTime;
    for (std::size_t c = 0; c < groups_.size(); ++c) {
      const AlikeGroup& group = groups_[c];
      const Cluster& devices = device_classes.cluster(proposal_.classes[c].device_class);
      // A device updates its stages in the order of their layers.
      std::vector<Duration> time = group.work;
      for (std::size_t s = 0; s < group.spans.size(); ++s) {
        if (!sums_.has_update(group.spans[s])) continue;
        const std::size_t d = group.device_of[s];
        time[d] = std::max({time[d], group.ready[s], barrier}) +
                  sums_.update(group.spans[s], devices.devices[d]);
      }
      for (const Duration end : time) last = std::max(last, end);
    }
    return last;
  }

 private:
  // All owners enter together, each after its last work and its collective before.
  void reduce_layers(LayerSpan span) {
    Duration entry{0};
    for (AlikeGroup& group : groups_) {
      while (group.spans[group.stage].end <= span.first) ++group.stage;
      const std::size_t d = group.device_of[group.stage];
      entry = std::max({entry, group.work[d], group.collective[d]});
    }
    if (!sums_.has_update(span)) return;
    reduction_.size = sums_.updated_parameters(span);
    const Duration end = entry + collective_cost(reduction_, cluster_).time;
    for (AlikeGroup& group : groups_) {
      group.collective[group.device_of[group.stage]] = group.ready[group.stage] = end;
    }
  }

  const Proposal& proposal_;
  const ChainSums& sums_;
  const Cluster& cluster_;
  Collective reduction_;
  std::vector<AlikeGroup> groups_;  // by class
};

}  // namespace

std::optional<Duration> find_alike_makespan(
    const Shape& shape, const Proposal& proposal,
    const std::vector<const std::vector<Duration>*>& last_work, Setting setting,
    const DeviceGroupClasses& device_classes, const SpaceSums& sums, const SearchOptions& options,
    std::optional<Duration> barrier) {
  const Placement placement = placement_of(shape.variant);
  const Cluster& cluster = setting.cluster();
  if (directions(placement) > 1 || !cluster.links.empty()) return std::nullopt;
  if (!cluster.link_classes.empty() || !setting.profile().tied.empty()) return std::nullopt;
  AlikeTail tail(shape, proposal, sums.of(shape), cluster, options);
  for (std::size_t c = 0; c < proposal.classes.size(); ++c) {
    std::vector<LayerSpan> spans = sums.spans_of(proposal.classes[c].cuts);
    const auto devices = static_cast<int>(last_work[c]->size());
    std::vector<std::size_t> device_of;
    for (int s = 0; s < static_cast<int>(spans.size()); ++s) {
      device_of.push_back(static_cast<std::size_t>(device_of_stage(placement, devices, 0, s)));
    }
    tail.add(std::move(spans), std::move(device_of), *last_work[c]);
  }
  tail.reduce();
  return tail.update(device_classes, barrier);
}

}  // namespace frazil
