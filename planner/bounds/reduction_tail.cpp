#include "planner/bounds/reduction_tail.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "planner/lowering/reduction_memory.h"
#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"
#include "profiles/processes.h"
#include "sim/collective_cost.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {
namespace {

int stage_of(const std::vector<LayerSpan>& spans, int layer) {
  const auto after =
      std::upper_bound(spans.begin(), spans.end(), layer,
                       [](int wanted, const LayerSpan& span) { return wanted < span.first; });
  return static_cast<int>(after - spans.begin()) - 1;
}

}  // namespace

std::optional<Duration> find_update_barrier(const Shape& shape, const DeviceGroups& groups,
                                            const DeviceGroupClasses& device_classes,
                                            const Cluster& cluster, const SearchOptions& options) {
  const bool at_end = facts_of(shape.variant.schedule).versions == WeightVersions::kSync;
  if (at_end && device_classes.span_processes(groups)) return commit_round_of(cluster);
  return options.clip ? std::optional(Duration{0}) : std::nullopt;
}

ReductionTail::ReductionTail(const Shape& shape, const Proposal& proposal,
                             const DeviceGroups& groups, const SpaceSums& sums,
                             const Cluster& cluster, const SearchOptions& options,
                             std::optional<Duration> barrier)
    : shape_(shape),
      proposal_(proposal),
      groups_(groups),
      space_sums_(sums),
      cluster_(cluster),
      options_(options),
      barrier_(barrier),
      sums_(sums.of(shape)),
      micro_batches_(divide_up(options.batch_size, shape.cell.micro_batch_size)),
      ends_(cluster.devices.size()) {
  list_pipelines();
  list_updates();
}

void ReductionTail::list_pipelines() {
  const Placement placement = facts_of(shape_.variant.schedule).placement;
  int first = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto& cuts = proposal_.classes[static_cast<std::size_t>(proposal_.class_of[g])].cuts;
    const auto devices = static_cast<int>(groups_[g].devices.size());
    const auto shares = split_share(first, proposal_.shares[g], directions(placement));
    first += proposal_.shares[g];
    for (int way = 0; way < directions(placement); ++way) {
      OnePipeline& pipeline = pipelines_.emplace_back();
      pipeline.spans = space_sums_.spans_of(cuts);
      pipeline.owned = shares[static_cast<std::size_t>(way)];
      pipeline.sets =
          options_.reduction == ReductionMode::kExact
              ? held_gradient_sets({{pipeline.owned.first.value, pipeline.owned.last.value + 1}},
                                   micro_batches_)
              : 1;
      for (std::size_t s = 0; s < pipeline.spans.size(); ++s) {
        const int device = device_of_stage(placement, devices, way, static_cast<int>(s));
        pipeline.devices.push_back(groups_[g].devices[static_cast<std::size_t>(device)]);
      }
    }
  }
}

void ReductionTail::list_updates() {
  for (std::size_t p = 0; p < pipelines_.size(); ++p) {
    const OnePipeline& pipeline = pipelines_[p];
    for (std::size_t s = 0; s < pipeline.spans.size(); ++s) {
      const LayerSpan span = pipeline.spans[s];
      if (!sums_.has_update(span)) continue;
      const DeviceId device = pipeline.devices[s];
      DeviceEnds& ends = ends_[device.index()];
      ends.gradients += sums_.updated_parameters(span) * pipeline.sets;
      ends.updates.push_back({span.first, static_cast<int>(p), static_cast<int>(s),
                              sums_.update(span, cluster_.devices[device.index()]), Duration{0}});
    }
  }
  for (DeviceEnds& ends : ends_) {
    std::sort(ends.updates.begin(), ends.updates.end(), [](const Update& a, const Update& b) {
      return std::tie(a.first_layer, a.pipeline, a.stage) <
             std::tie(b.first_layer, b.pipeline, b.stage);
    });
  }
}

ReductionTail::Update& ReductionTail::update_of(DeviceId device, int pipeline, int stage) {
  auto& updates = ends_[device.index()].updates;
  const auto found = std::find_if(updates.begin(), updates.end(), [&](const Update& update) {
    return update.pipeline == pipeline && update.stage == stage;
  });
  ENSURE(found != updates.end(), "a reduction of a stage without an update");
  return *found;
}

// Runs a collective and returns its start: all devices enter together, each after its last backward
// and its collective before.
Duration ReductionTail::reduce(const Collective& collective) {
  Duration entry{0};
  for (const DeviceId device : collective.devices) {
    const DeviceEnds& ends = ends_[device.index()];
    entry = std::max({entry, ends.work, ends.collective});
  }
  const Duration end = entry + collective_cost(collective, cluster_).time;
  for (const DeviceId device : collective.devices) ends_[device.index()].collective = end;
  return entry;
}

void ReductionTail::hold(DeviceId device, Duration at, Bytes size) {
  DeviceEnds& ends = ends_[device.index()];
  const Bytes most = ends.reducing ? ends.reducing->size : ends.spare;
  if (size > most) ends.reducing = Reducing{at, size};
}

// Returns what a reduction takes on the device at `self`; 0 if that surely is within the device's
// spare bytes, so that most need not be worked out.
Bytes ReductionTail::find_memory(const Collective& collective,
                                 const std::vector<std::vector<TreeNode>>& nodes, int all,
                                 std::optional<ReceivedSets>& received, std::size_t self,
                                 Bytes held) const {
  const Bytes size = collective.size;
  if (options_.reduction == ReductionMode::kFast) return find_ring_reduction_memory(size, held);
  const int own = collective.owned[self];
  const Bytes bound = bound_exact_reduction_memory(size, nodes.size(), own, all - own, held);
  if (bound <= ends_[collective.devices[self].index()].spare) return Bytes{};
  if (!received) received.emplace(nodes, micro_batches_);
  return find_exact_reduction_memory(size, *received, self, held);
}

std::vector<ReductionTail::Owner> ReductionTail::find_owners(int layer) const {
  std::vector<Owner> owners;
  for (const OnePipeline& pipeline : pipelines_) {
    const auto stage = static_cast<std::size_t>(stage_of(pipeline.spans, layer));
    owners.push_back({pipeline.devices[stage],
                      {pipeline.owned.first.value, pipeline.owned.last.value + 1},
                      pipeline.sets});
  }
  std::stable_sort(owners.begin(), owners.end(),
                   [](const Owner& a, const Owner& b) { return a.device < b.device; });
  return owners;
}

// Reduces the gradients of `span`, whose layers have the same owners while the layers around the
// span have other owners.
void ReductionTail::reduce_layers(LayerSpan span) {
  if (!sums_.has_update(span)) return;
  const std::vector<Owner> owners = find_owners(span.first);
  Collective collective;
  collective.kind = options_.reduction == ReductionMode::kExact
                        ? CollectiveKind::kExactTreeAllReduce
                        : CollectiveKind::kRingAllReduce;
  collective.size = sums_.updated_parameters(span);
  std::vector<std::vector<TreeNode>> nodes;
  std::vector<int> sets;
  for (std::size_t o = 0; o < owners.size();) {
    std::vector<TreeNode> owned;
    const DeviceId device = owners[o].device;
    sets.push_back(owners[o].sets);
    for (; o < owners.size() && owners[o].device == device; ++o) owned.push_back(owners[o].owned);
    std::sort(owned.begin(), owned.end());
    collective.devices.push_back(device);
    nodes.push_back(maximal_nodes(owned, micro_batches_));
    collective.owned.push_back(static_cast<int>(nodes.back().size()));
  }
  if (collective.devices.size() < 2) return;
  const Duration entry = reduce(collective);
  const int all = std::accumulate(collective.owned.begin(), collective.owned.end(), 0);
  std::optional<ReceivedSets> received;
  for (std::size_t o = 0; o < nodes.size(); ++o) {
    hold(collective.devices[o], entry,
         find_memory(collective, nodes, all, received, o, collective.size * sets[o]));
  }
  for (std::size_t p = 0; p < pipelines_.size(); ++p) {
    const int stage = stage_of(pipelines_[p].spans, span.first);
    const DeviceId device = pipelines_[p].devices[static_cast<std::size_t>(stage)];
    update_of(device, static_cast<int>(p), stage).ready = ends_[device.index()].collective;
  }
}

void ReductionTail::set_tied(const Plan& plan, const ModelProfile& profile,
                             const Activity& activity) {
  exchanges_ = find_tied_exchanges(plan, profile, activity);
  for (const TiedExchange& exchange : exchanges_) {
    std::vector<Bytes>& memory = exchange_memory_.emplace_back();
    for (const DeviceId device : exchange.collective.devices) {
      memory.push_back(find_tied_memory(exchange, exchanges_, plan, profile, device));
    }
  }
}

void ReductionTail::exchange(const TiedExchange& tied, const std::vector<Bytes>& memory) {
  const Duration entry = reduce(tied.collective);
  for (std::size_t d = 0; d < memory.size(); ++d) {
    hold(tied.collective.devices[d], entry, memory[d]);
  }
  for (const TiedUse& use : tied.uses) {
    for (const DeviceId device : use.devices) {
      update_of(device, use.pipeline.value, use.stage.value).ready =
          ends_[device.index()].collective;
    }
  }
}

Duration ReductionTail::makespan() {
  if (pipelines_.size() > 1) {
    std::set<int> cuts;
    for (const GroupClass& group : proposal_.classes) {
      for (const LayerId cut : group.cuts) cuts.insert(cut.value);
    }
    cuts.insert(sums_.layers());
    int first = 0;
    for (const int end : cuts) {
      reduce_layers({first, end});
      first = end;
    }
  }
  for (std::size_t e = 0; e < exchanges_.size(); ++e) exchange(exchanges_[e], exchange_memory_[e]);
  Duration barrier{0};
  Duration last{0};
  for (const DeviceEnds& ends : ends_) {
    last = std::max({last, ends.work, ends.collective});
  }
  if (barrier_) barrier = last + *barrier_;
  for (const DeviceEnds& ends : ends_) {
    Duration time = ends.work;
    for (const Update& update : ends.updates) {
      time = std::max({time, update.ready, barrier}) + update.time;
    }
    last = std::max(last, time);
  }
  return last;
}

}  // namespace frazil
