#include "planner/search/step_tail.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "planner/schedule_menu.h"
#include "profiles/error.h"
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

StepTail::StepTail(const Shape& shape, const Proposal& proposal, const DeviceGroups& groups,
                   const Proposer& proposer, const Cluster& cluster, const SearchOptions& options)
    : shape_(shape),
      proposal_(proposal),
      groups_(groups),
      proposer_(proposer),
      cluster_(cluster),
      options_(options),
      sums_(proposer.sums_of(shape.cell.micro_batch_size)),
      micro_batches_((options.batch_size + shape.cell.micro_batch_size - 1) /
                     shape.cell.micro_batch_size),
      ends_(cluster.devices.size()) {
  list_pipelines();
  list_updates();
}

void StepTail::list_pipelines() {
  const Placement placement = family_of(shape_.variant.schedule).placement;
  int first = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto& cuts = proposal_.classes[static_cast<std::size_t>(proposal_.class_of[g])].cuts;
    const auto devices = static_cast<int>(groups_[g].devices.size());
    const auto shares = split_share(first, proposal_.shares[g], directions(placement));
    first += proposal_.shares[g];
    for (int way = 0; way < directions(placement); ++way) {
      OnePipeline& pipeline = pipelines_.emplace_back();
      pipeline.spans = proposer_.spans_of(cuts);
      pipeline.owned = shares[static_cast<std::size_t>(way)];
      for (std::size_t s = 0; s < pipeline.spans.size(); ++s) {
        const int device = device_of_stage(placement, devices, way, static_cast<int>(s));
        pipeline.devices.push_back(groups_[g].devices[static_cast<std::size_t>(device)]);
      }
    }
  }
}

void StepTail::list_updates() {
  const bool exact = options_.reduction == ReductionMode::kExact;
  for (std::size_t p = 0; p < pipelines_.size(); ++p) {
    const OnePipeline& pipeline = pipelines_[p];
    const int sets =
        exact ? held_gradient_sets({{pipeline.owned.first.value, pipeline.owned.last.value + 1}},
                                   micro_batches_)
              : 1;
    for (std::size_t s = 0; s < pipeline.spans.size(); ++s) {
      const LayerSpan span = pipeline.spans[s];
      if (!sums_.has_update(span)) continue;
      const DeviceId device = pipeline.devices[s];
      DeviceEnds& ends = ends_[device.index()];
      ends.gradients += sums_.updated_parameters(span) * sets;
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

StepTail::Update& StepTail::update_of(DeviceId device, int pipeline, int stage) {
  auto& updates = ends_[device.index()].updates;
  const auto found = std::find_if(updates.begin(), updates.end(), [&](const Update& update) {
    return update.pipeline == pipeline && update.stage == stage;
  });
  ENSURE(found != updates.end(), "a reduction of a stage without an update");
  return *found;
}

// All enter together, each after its last backward and its collective before.
void StepTail::reduce(const Collective& collective) {
  Duration entry{0};
  for (const DeviceId device : collective.devices) {
    const DeviceEnds& ends = ends_[device.index()];
    entry = std::max({entry, ends.work, ends.collective});
  }
  const Duration end = entry + collective_cost(collective, cluster_).time;
  for (const DeviceId device : collective.devices) ends_[device.index()].collective = end;
}

// Layers of `span` have the same owners, and the layers around it others.
void StepTail::reduce_layers(LayerSpan span) {
  if (!sums_.has_update(span)) return;
  std::vector<std::pair<DeviceId, TreeNode>> owners;
  for (const OnePipeline& pipeline : pipelines_) {
    const auto stage = static_cast<std::size_t>(stage_of(pipeline.spans, span.first));
    owners.push_back(
        {pipeline.devices[stage], {pipeline.owned.first.value, pipeline.owned.last.value + 1}});
  }
  std::sort(owners.begin(), owners.end());
  Collective collective;
  collective.kind = options_.reduction == ReductionMode::kExact
                        ? CollectiveKind::kExactTreeAllReduce
                        : CollectiveKind::kRingAllReduce;
  collective.size = sums_.updated_parameters(span);
  for (std::size_t o = 0; o < owners.size();) {
    std::vector<TreeNode> owned;
    const DeviceId device = owners[o].first;
    for (; o < owners.size() && owners[o].first == device; ++o) owned.push_back(owners[o].second);
    collective.devices.push_back(device);
    collective.owned.push_back(static_cast<int>(maximal_nodes(owned, micro_batches_).size()));
  }
  if (collective.devices.size() < 2) return;
  reduce(collective);
  for (std::size_t p = 0; p < pipelines_.size(); ++p) {
    const int stage = stage_of(pipelines_[p].spans, span.first);
    const DeviceId device = pipelines_[p].devices[static_cast<std::size_t>(stage)];
    update_of(device, static_cast<int>(p), stage).ready = ends_[device.index()].collective;
  }
}

void StepTail::exchange(const TiedExchange& tied) {
  reduce(tied.collective);
  for (const TiedUse& use : tied.uses) {
    for (const DeviceId device : use.devices) {
      update_of(device, use.pipeline.value, use.stage.value).ready =
          ends_[device.index()].collective;
    }
  }
}

Duration StepTail::makespan() {
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
  for (const TiedExchange& tied : exchanges_) exchange(tied);
  Duration barrier{0};
  Duration last{0};
  for (const DeviceEnds& ends : ends_) {
    last = std::max({last, ends.work, ends.collective});
  }
  if (options_.clip) barrier = last;
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
