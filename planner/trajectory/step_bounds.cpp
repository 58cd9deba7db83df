#include "planner/trajectory/step_bounds.h"

#include <algorithm>
#include <set>

#include "planner/bounds/device_groups.h"
#include "planner/plan/placement.h"
#include "planner/plan/schedule_facts.h"
#include "planner/trajectory/cheapest_walk.h"
#include "profiles/error.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {
namespace {

LayerSpan span_of(const Stage& stage) {
  return {stage.layers.front().first.value, stage.layers.front().last.value + 1};
}

bool lies_alone(const Stage& stage) {
  return stage.devices.size() == 1 && stage.layers.size() == 1;
}

// True if the bounds cover the plan: it is synchronous and has one named schedule in one direction,
// each stage lies on one device, no device serves two pipelines, and all stages recompute or none
// does.
bool is_bounded(const Plan& plan) {
  const auto* named = std::get_if<NamedSchedule>(&plan.schedule);
  if (named == nullptr || plan.cache_frozen_prefix || plan.versions != WeightVersions::kSync) {
    return false;
  }
  const ScheduleFacts& facts = facts_of(named->kind);
  if (facts.versions != WeightVersions::kSync || directions(facts.placement) != 1) return false;
  const MemoryPolicy memory = plan.pipelines.front().stages.front().memory;
  std::set<DeviceId> known;
  for (const Pipeline& pipeline : plan.pipelines) {
    std::set<DeviceId> own;
    if (pipeline.micro_batches.size() != 1) return false;
    for (const Stage& stage : pipeline.stages) {
      const bool same = stage.memory == memory || facts_of(named->kind).recomputes_itself;
      if (!lies_alone(stage) || !same || known.count(stage.devices.front()) > 0) return false;
      own.insert(stage.devices.front());
    }
    known.merge(own);
  }
  return true;
}

// Returns by device the bytes of parameters, optimizer state and so many sets of gradients.
std::vector<Bytes> list_state(const Shape& shape, const std::vector<LayerSpan>& spans, int sets,
                              const ChainSums& sums) {
  const Placement placement = facts_of(shape.variant.schedule).placement;
  std::vector<Bytes> state(static_cast<std::size_t>(shape.cell.devices));
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const int at = device_of_stage(placement, shape.cell.devices, 0, static_cast<int>(s));
    state[static_cast<std::size_t>(at)] += sums.parameters(spans[s]) + sums.optimizer(spans[s]) +
                                           sums.updated_parameters(spans[s]) * sets;
  }
  return state;
}

// Returns how many sets of gradients the exact reduction tree holds; a running sum holds one.
int count_gradient_sets(const Plan& plan, const MicroBatches& owned) {
  if (plan.reduction != ReductionMode::kExact) return 1;
  return held_gradient_sets({{owned.first.value, owned.last.value + 1}}, plan.micro_batches());
}

}  // namespace

StepBounds::StepBounds(const std::vector<Plan>& plans, Setting setting,
                       const SearchOptions& options)
    : setting_(setting),
      device_classes_(setting.cluster(), options.joint),
      space_{static_cast<int>(setting.profile().layers.size()),
             static_cast<int>(setting.cluster().devices.size()), device_classes_.arrangements(),
             options},
      bounds_(space_, device_classes_, setting.cluster()) {
  for (const Plan& plan : plans) classes_.push_back(list_classes(plan));
}

Cluster StepBounds::make_group_cluster(const Pipeline& pipeline, const NamedSchedule& named) const {
  const Placement placement = facts_of(named.kind).placement;
  const std::size_t devices = pipeline.stages.size() / static_cast<std::size_t>(named.chunks);
  std::vector<DeviceId> own(devices);
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const int at = device_of_stage(placement, static_cast<int>(devices), 0, static_cast<int>(s));
    own[static_cast<std::size_t>(at)] = pipeline.stages[s].devices.front();
  }
  const Cluster& cluster = setting_.cluster();
  Cluster like;
  like.hosts = cluster.hosts;
  like.default_link = cluster.default_link;
  like.link_classes = cluster.link_classes;
  for (const DeviceId device : own) like.devices.push_back(cluster.devices[device.index()]);
  for (std::size_t a = 0; a < devices && !cluster.links.empty(); ++a) {
    for (std::size_t b = 0; b < devices; ++b) {
      if (a == b) continue;
      like.links.push_back({DeviceId{a}, DeviceId{b}, cluster.link(own[a], own[b])});
    }
  }
  return like;
}

std::vector<StepBounds::PipelineClass> StepBounds::list_classes(const Plan& plan) const {
  std::vector<PipelineClass> classes;
  if (!is_bounded(plan)) return classes;
  const NamedSchedule named = std::get<NamedSchedule>(plan.schedule);
  const auto replicas = static_cast<int>(plan.pipelines.size());
  const int all = plan.micro_batches();
  Owners owners{replicas, 1};
  for (const Pipeline& pipeline : plan.pipelines) {
    const MicroBatches& owned = pipeline.micro_batches.front();
    if (plan.reduction != ReductionMode::kExact) break;
    const auto nodes = maximal_nodes({{owned.first.value, owned.last.value + 1}}, all);
    owners.nodes = std::max(owners.nodes, static_cast<int>(nodes.size()));
  }
  const MemoryPolicy memory = plan.pipelines.front().stages.front().memory;
  for (const Pipeline& pipeline : plan.pipelines) {
    PipelineClass own;
    const MicroBatches& owned = pipeline.micro_batches.front();
    own.shape.cell = {static_cast<int>(pipeline.stages.size()) / named.chunks, replicas, 0,
                      plan.micro_batch_size};
    own.shape.variant = {0, named.kind, named.chunks, named.in_flight,
                         memory == MemoryPolicy::kRecompute};
    own.group.share = owned.count();
    own.group.has_short =
        plan.batch_size % plan.micro_batch_size != 0 && owned.last.value + 1 == all;
    for (const Stage& stage : pipeline.stages) {
      own.spans.push_back(span_of(stage));
      if (own.spans.size() > 1) own.group.cuts.push_back(stage.layers.front().first);
    }
    own.cluster = make_group_cluster(pipeline, named);
    own.owners = owners;
    const auto same = [&](const PipelineClass& other) {
      return other.spans == own.spans && other.group.share == own.group.share &&
             other.group.has_short == own.group.has_short && other.cluster == own.cluster;
    };
    own.gradient_sets = count_gradient_sets(plan, owned);
    const auto known = std::find_if(classes.begin(), classes.end(), same);
    if (known == classes.end()) {
      classes.push_back(std::move(own));
    } else {
      known->gradient_sets = std::max(known->gradient_sets, own.gradient_sets);
    }
  }
  return classes;
}

StepBounds::Bound StepBounds::bound(std::size_t plan, const ChainSums& sums) const {
  Bound entry;
  for (const PipelineClass& own : classes_[plan]) {
    const std::vector<Bytes> state = list_state(own.shape, own.spans, own.gradient_sets, sums);
    for (std::size_t d = 0; d < state.size(); ++d) {
      if (state[d] > own.cluster.devices[d].memory_limit) return {kFarAway, true};
    }
    const NamedBound group = bound_group(
        own.shape.variant,
        add_up_loads(own.shape, own.group, own.spans, sums, own.cluster, bounds_, own.owners));
    entry.time = std::max(entry.time, group.time);
  }
  return entry;
}

// Adds to bound() what each device surely holds, and what follows its last work.
StepBounds::Bound StepBounds::bound_by_order(std::size_t plan, const ChainSums& sums) {
  Bound entry = bound(plan, sums);
  for (const PipelineClass& own : classes_[plan]) {
    if (entry.exact) break;
    const ShapeVariant& variant = own.shape.variant;
    if (facts_of(variant.schedule).needs_costs) continue;
    OrderProblem problem;
    problem.devices = own.shape.cell.devices;
    problem.chunks = variant.chunks;
    problem.micro_batches = own.group.share;
    problem.in_flight = variant.in_flight;
    const GroupLoads loads =
        add_up_loads(own.shape, own.group, own.spans, sums, own.cluster, bounds_, own.owners);
    try {
      const OrderTimes times = time_orders(own.shape, own.group, sums, own.cluster,
                                           orders_.find(variant.schedule, problem));
      if (!times.known) continue;
      const auto once = list_state(own.shape, own.spans, 1, sums);
      const auto state = list_state(own.shape, own.spans, own.gradient_sets, sums);
      for (std::size_t d = 0; d < times.held.size(); ++d) {
        const Bytes held = times.held[d] + state[d] - once[d];
        if (held > own.cluster.devices[d].memory_limit) return {kFarAway, true};
        entry.time = std::max(entry.time, times.last_work[d] + loads.devices[d].after());
      }
    } catch (const InfeasibleError&) {
      return {kFarAway, true};
    }
  }
  return entry;
}

}  // namespace frazil
