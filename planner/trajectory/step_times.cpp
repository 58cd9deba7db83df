#include "planner/trajectory/step_times.h"

#include <algorithm>
#include <map>
#include <set>

#include "planner/bounds/device_groups.h"
#include "planner/plan/placement.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/ranking.h"
#include "planner/prediction/simulate_plan.h"
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

int count_first_layers(const Plan& plan, int layers) {
  int least = layers;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (auto stage = pipeline.stages.begin() + 1; stage != pipeline.stages.end(); ++stage) {
      for (const LayerRange& range : stage->layers) least = std::min(least, range.first.value);
    }
  }
  return least;
}

StepTimes::StepTimes(const std::vector<Plan>& plans, const std::vector<FreezeMask>& masks,
                     Setting setting, const SearchOptions& options)
    : plans_(plans),
      masks_(masks),
      setting_(setting),
      options_(options),
      device_classes_(setting.cluster(), options.joint),
      space_{static_cast<int>(setting.profile().layers.size()),
             static_cast<int>(setting.cluster().devices.size()), device_classes_.arrangements(),
             options_},
      bounds_(space_, device_classes_, setting.cluster()) {
  const ModelProfile& profile = setting.profile();
  for (const Plan& plan : plans_) {
    classes_.push_back(list_classes(plan));
    first_stage_.push_back(count_first_layers(plan, space_.layers));
  }
  cached_.resize(masks_.size() * plans_.size());
  for (const FreezeMask& mask : masks_) {
    const Activity& activity = activities_.emplace_back(find_activity(profile, mask));
    prefix_.push_back(count_frozen_prefix(profile, activity));
    std::map<int, ChainSums> sums_of;
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      const int size = plans_[p].micro_batch_size;
      const auto sums = sums_of.try_emplace(size, profile, activity, size).first;
      entries_.push_back(bound(classes_[p], sums->second));
    }
  }
}

Cluster StepTimes::make_group_cluster(const Pipeline& pipeline, const NamedSchedule& named) const {
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

std::vector<StepTimes::PipelineClass> StepTimes::list_classes(const Plan& plan) const {
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

StepTimes::Entry StepTimes::bound(const std::vector<PipelineClass>& classes,
                                  const ChainSums& sums) const {
  Entry entry;
  for (const PipelineClass& own : classes) {
    const std::vector<Bytes> state = list_state(own.shape, own.spans, own.gradient_sets, sums);
    for (std::size_t d = 0; d < state.size(); ++d) {
      if (state[d] > own.cluster.devices[d].memory_limit) return {kFarAway, true};
    }
    const NamedBound bound = bound_group(
        own.shape.variant,
        add_up_loads(own.shape, own.group, own.spans, sums, own.cluster, bounds_, own.owners));
    entry.time = std::max(entry.time, bound.time);
  }
  return entry;
}

// Adds to bound() what each device surely holds, and what follows its last work.
StepTimes::Entry StepTimes::bound_by_order(const std::vector<PipelineClass>& classes,
                                           const ChainSums& sums) {
  Entry entry = bound(classes, sums);
  for (const PipelineClass& own : classes) {
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

Duration StepTimes::simulate(std::size_t mask, std::size_t plan, int depth) const {
  Plan masked = plans_[plan];
  masked.mask = masks_[mask];
  Activity activity = activities_[mask];
  activity.cached = depth;
  masked.cache_frozen_prefix = depth > 0 && depth == prefix_[mask];
  try {
    const StepOptions options{.clip = options_.clip, .overlap = options_.overlap};
    const Simulation step = simulate_step(masked, activity, setting_, options).simulation;
    return find_overflow(step.memory, setting_.cluster()) ? kFarAway : step.makespan;
  } catch (const InfeasibleError&) {
    return kFarAway;
  }
}

Duration StepTimes::exact(std::size_t mask, std::size_t plan) {
  Entry& entry = entries_[mask * plans_.size() + plan];
  if (!entry.exact) entry = {simulate(mask, plan, 0), true};
  return entry.time;
}

const ChainSums& StepTimes::cached_sums(std::size_t mask, int size, int depth) {
  const auto known = cached_sums_.find({mask, size, depth});
  if (known != cached_sums_.end()) return known->second;
  Activity activity = activities_[mask];
  activity.cached = depth;
  return cached_sums_.try_emplace(std::tuple(mask, size, depth), setting_.profile(), activity, size)
      .first->second;
}

StepTimes::Entry& StepTimes::cached_at(std::size_t mask, std::size_t plan, int depth) {
  auto& by_depth = cached_[mask * plans_.size() + plan];
  if (by_depth.empty()) by_depth.resize(setting_.profile().layers.size() + 1);
  std::optional<Entry>& entry = by_depth[static_cast<std::size_t>(depth)];
  if (entry) return *entry;
  if (!may_cache(mask, plan, depth)) return entry.emplace(Entry{kFarAway, true});
  const ChainSums& sums = cached_sums(mask, plans_[plan].micro_batch_size, depth);
  return entry.emplace(bound_by_order(classes_[plan], sums));
}

Duration StepTimes::known(std::size_t mask, std::size_t plan, int depth) {
  return depth == 0 ? known(mask, plan) : cached_at(mask, plan, depth).time;
}

Duration StepTimes::least(std::size_t mask, std::size_t plan, int depth) {
  return bound_by_order(classes_[plan], cached_sums(mask, plans_[plan].micro_batch_size, depth))
      .time;
}

Duration StepTimes::exact(std::size_t mask, std::size_t plan, int depth) {
  if (depth == 0) return exact(mask, plan);
  Entry& entry = cached_at(mask, plan, depth);
  if (!entry.exact) entry = {simulate(mask, plan, depth), true};
  return entry.time;
}

}  // namespace frazil
