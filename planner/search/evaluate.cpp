#include "planner/search/evaluate.h"

#include <algorithm>
#include <utility>

#include "planner/bounds/reduction_tail.h"
#include "planner/bounds/variant_memory.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/error.h"

namespace frazil {
namespace {

Rejection refuse(const std::string& sentence) {
  Rejection rejection;
  rejection.why = Rejection::Why::kRefused;
  rejection.sentence = sentence;
  return rejection;
}

Rejection miss_memory(std::optional<DeviceId> device, Bytes needed, Bytes available) {
  Rejection rejection;
  rejection.why = Rejection::Why::kMemory;
  rejection.device = device;
  rejection.needed = needed;
  rejection.available = available;
  return rejection;
}

bool misses_less(const Rejection& rejection, const Rejection& other) {
  const bool refused = rejection.why == Rejection::Why::kRefused;
  const bool other_refused = other.why == Rejection::Why::kRefused;
  if (refused != other_refused) return other_refused;
  return rejection.needed - rejection.available < other.needed - other.available;
}

// True if the first of two cuts of a shape is better: one that fits, then the faster one; of two
// that do not fit the one that misses less.
bool comes_before(const Verdict& verdict, const Verdict& other) {
  if (verdict.rejection && other.rejection)
    return misses_less(*verdict.rejection, *other.rejection);
  if (verdict.rejection || other.rejection) return other.rejection.has_value();
  return verdict.makespan < other.makespan;
}

// True if the first candidate is better in the same sense, as a whole search ranks them.
bool comes_before(const Candidate& candidate, const Candidate& other) {
  const auto key = [](const Candidate& one) {
    const auto [infeasible, refused, missing, makespan, devices, stages, plain, memory, name] =
        ranking_key(one);
    return std::tuple(infeasible, refused, missing, infeasible ? Duration{0} : makespan);
  };
  return key(candidate) < key(other);
}

}  // namespace

Evaluator::Evaluator(Setting setting, const SearchOptions& options, OrderTable& orders)
    : setting_(setting),
      options_(options),
      activity_(find_activity(setting.profile(), options.mask)),
      hash_(model_hash(setting.profile())),
      device_classes_(setting.cluster(), options.joint),
      space_{static_cast<int>(setting.profile().layers.size()),
             static_cast<int>(setting.cluster().devices.size()), device_classes_.arrangements(),
             options, options.cache ? count_frozen_prefix(setting.profile(), activity_) : 0},
      sums_(setting.profile(), activity_, space_),
      bounds_(space_, device_classes_, setting.cluster()),
      proposer_(space_, sums_, device_classes_, setting.profile().input_bytes_per_sample),
      groups_(setting, activity_, options, device_classes_, sums_, orders) {}

NamedBound Evaluator::bound(const Shape& shape, const Proposal& proposal) {
  const Owners owners = owners_of(shape, proposal);
  NamedBound largest{Duration{0}, "busiest-device"};
  for (const GroupClass& group : proposal.classes) {
    const NamedBound own = bound_group(shape.variant, loads_of(shape, group, owners));
    if (own.time > largest.time) largest = own;
  }
  const ChainSums& sums = sums_.of(shape);
  if (!sums.has_update({0, sums.layers()})) return largest;
  const DeviceGroups& groups = device_classes_.groups(shape.cell, shape.variant.arrangement);
  const auto barrier =
      find_update_barrier(shape, groups, device_classes_, setting_.cluster(), options_);
  largest.time += barrier.value_or(Duration{0});
  return largest;
}

const GroupLoads& Evaluator::loads_of(const Shape& shape, const GroupClass& group,
                                      const Owners& owners) {
  const ShapeVariant& variant = shape.variant;
  LoadKey key{shape.cell.micro_batch_size,
              group.device_class,
              group.share - (group.has_short ? 1 : 0),
              placement_of(variant),
              facts_of(variant.schedule).splits_backward,
              variant.recompute,
              facts_of(variant.schedule).recomputes_itself,
              variant.cached,
              owners.devices,
              owners.nodes,
              group.cuts};
  const auto [known, is_new] = loads_.try_emplace(std::move(key));
  if (is_new) {
    known->second = add_up_loads(shape, group, sums_.spans_of(group.cuts), sums_.of(shape),
                                 device_classes_.cluster(group.device_class), bounds_, owners);
  }
  return known->second;
}

NamedBound Evaluator::bound_by_shares(const Shape& shape) {
  const Proposal& dealt = proposer_.deal(shape);
  const Owners owners = owners_of(shape, dealt);
  const VariantClass variant = class_of(shape.variant);
  NamedBound largest{Duration{0}, "total-work"};
  for (const GroupClass& group : dealt.classes) {
    const BatchDeal deal{group.share - (group.has_short ? 1 : 0), owners.nodes,
                         owners.devices / shape.cell.replicas};
    const auto [known, is_new] =
        by_shares_.try_emplace({shape.cell, variant, deal, group.device_class});
    if (is_new) {
      known->second = bounds_.bound_group(sums_.of(shape), shape.cell, variant, deal,
                                          device_classes_.cluster(group.device_class));
    }
    if (known->second.time > largest.time) largest = known->second;
  }
  return largest;
}

std::optional<Rejection> Evaluator::surely_misses(const Shape& shape, const Proposal& proposal) {
  for (std::size_t c = 0; c < proposal.classes.size(); ++c) {
    const auto held = proposer_.least_memory(shape, proposal.classes[c]);
    if (held.needed <= held.available) continue;
    const DeviceGroups& groups = device_classes_.groups(shape.cell, shape.variant.arrangement);
    const auto place =
        std::find(proposal.class_of.begin(), proposal.class_of.end(), static_cast<int>(c));
    const DeviceGroup& first = groups[static_cast<std::size_t>(place - proposal.class_of.begin())];
    return miss_memory(first.devices[static_cast<std::size_t>(held.device)], held.needed,
                       held.available);
  }
  return std::nullopt;
}

bool Evaluator::is_hopeless(const Shape& shape) {
  const std::vector<GroupClass>& classes = proposer_.deal(shape).classes;
  return std::any_of(classes.begin(), classes.end(), [&](const GroupClass& group) {
    return proposer_.find_hopeless(shape, group).has_value();
  });
}

std::variant<NamedBound, Rejection> Evaluator::bound(const Shape& shape) {
  for (const GroupClass& group : proposer_.deal(shape).classes) {
    const auto hopeless = proposer_.find_hopeless(shape, group);
    if (hopeless) return miss_memory(std::nullopt, hopeless->needed, hopeless->available);
  }
  // It is not known yet which proposal will be the fastest that fits, so the least bound is taken.
  std::optional<NamedBound> least;
  std::optional<Rejection> missing;
  for (const Proposal& proposal : proposer_.propose(shape)) {
    if (auto own = surely_misses(shape, proposal)) {
      if (!missing || misses_less(*own, *missing)) missing = std::move(own);
      continue;
    }
    const NamedBound own = bound(shape, proposal);
    if (!least || own.time < least->time) least = own;
  }
  if (least) return *least;
  return *missing;
}

// Returns what a step takes at least if it fits, from each stage of the proposal alone.
Duration Evaluator::bound_by_stages(const Shape& shape, const Proposal& proposal) const {
  Duration least{0};
  const std::vector<StageLimits> limits = limit_stages(shape, proposal);
  for (std::size_t c = 0; c < limits.size(); ++c) {
    const std::vector<LayerSpan> spans = sums_.spans_of(proposal.classes[c].cuts);
    for (std::size_t s = 0; s < spans.size(); ++s) {
      least = std::max(least, limits[c].at_least(static_cast<int>(s), spans[s]));
    }
  }
  return least;
}

std::optional<std::variant<NamedBound, Rejection>> Evaluator::bound_by_order(const Shape& shape,
                                                                             Duration most) {
  std::optional<Duration> least;
  std::optional<Rejection> missing;
  const DeviceGroups& groups = device_classes_.groups(shape.cell, shape.variant.arrangement);
  for (const Proposal& proposal : proposer_.propose(shape)) {
    if (!GroupSimulation::applies(shape, proposal, options_)) return std::nullopt;
    // An order that depends on times is long to make; most that miss memory are not worth it.
    if (most < kNever && facts_of(shape.variant.schedule).needs_costs) {
      const Duration stages = bound_by_stages(shape, proposal);
      if (stages > most) {
        least = least ? std::min(*least, stages) : stages;
        continue;
      }
    }
    const auto found = groups_.at_least(shape, proposal, groups, most);
    if (!found) return std::nullopt;
    if (const auto& overflow = found->overflow) {
      Rejection own = miss_memory(overflow->device, overflow->needed, overflow->available);
      if (!missing || misses_less(own, *missing)) missing = std::move(own);
    } else if (!least || found->makespan < *least) {
      least = found->makespan;
    }
  }
  if (least) return NamedBound{*least, "order-of-work"};
  return *missing;
}

Plan Evaluator::plan_of(const Shape& shape, const Proposal& proposal) {
  Plan plan =
      make_plan(shape, proposal, device_classes_.groups(shape.cell, shape.variant.arrangement),
                options_, space_.layers);
  plan.model_hash = hash_;
  return plan;
}

StepOutcome Evaluator::simulate(const Shape& shape, const Proposal& proposal) {
  if (GroupSimulation::applies(shape, proposal, options_)) {
    return groups_.simulate(shape, proposal,
                            device_classes_.groups(shape.cell, shape.variant.arrangement));
  }
  return simulate_whole(plan_of(shape, proposal));
}

StepOutcome Evaluator::simulate_whole(const Plan& plan) {
  ++simulated_;
  StepOutcome outcome;
  try {
    PlanSimulation whole =
        simulate_plan(plan, setting_, {.clip = options_.clip, .overlap = options_.overlap});
    outcome.makespan = whole.step_time;
    outcome.memory = std::move(whole.memory);
    outcome.extrapolated = whole.extrapolated;
  } catch (const InfeasibleError& error) {
    outcome.refused = error.what();
  }
  return outcome;
}

Verdict Evaluator::judge(const Shape& shape, Proposal proposal) {
  Verdict verdict;
  StepOutcome outcome = simulate(shape, proposal);
  verdict.proposal = std::move(proposal);
  verdict.makespan = outcome.makespan;
  verdict.memory = std::move(outcome.memory);
  verdict.extrapolated = outcome.extrapolated;
  if (outcome.refused) {
    verdict.rejection = refuse(*outcome.refused);
  } else if (const auto overflow = find_overflow(verdict.memory, setting_.cluster())) {
    verdict.rejection = miss_memory(overflow->device, overflow->needed, overflow->available);
  }
  return verdict;
}

// True if the order of work is known and says that the proposal overflows, or takes `makespan` or
// more.
bool Evaluator::is_slower(const Shape& shape, const Proposal& proposal, Duration makespan) {
  if (!GroupSimulation::applies(shape, proposal, options_)) return false;
  const DeviceGroups& groups = device_classes_.groups(shape.cell, shape.variant.arrangement);
  const auto found = groups_.at_least(shape, proposal, groups, makespan);
  return found && (found->overflow || found->makespan >= makespan);
}

Verdict Evaluator::judge(const Shape& shape) {
  std::optional<Verdict> best;
  for (Proposal& proposal : proposer_.propose(shape)) {
    if (best && !best->rejection && is_slower(shape, proposal, best->makespan)) continue;
    Verdict verdict = judge(shape, std::move(proposal));
    if (!best || comes_before(verdict, *best)) best = std::move(verdict);
  }
  return std::move(*best);
}

std::vector<StageLimits> Evaluator::limit_stages(const Shape& shape,
                                                 const Proposal& proposal) const {
  const Owners owners = owners_of(shape, proposal);
  const int joined = shape.variant.cached ? space_.cached - 1 : 0;
  std::vector<StageLimits> limits;
  for (const GroupClass& group : proposal.classes) {
    limits.emplace_back(shape, group, joined, sums_.of(shape),
                        device_classes_.cluster(group.device_class), bounds_, owners);
  }
  return limits;
}

std::optional<Verdict> Evaluator::judge_below(const Shape& shape, const Proposal& proposal,
                                              Duration below) {
  const DeviceGroups& groups = device_classes_.groups(shape.cell, shape.variant.arrangement);
  if (GroupSimulation::applies(shape, proposal, options_)) {
    const auto least = groups_.at_least_once(shape, proposal, groups, below);
    if (!least || least->overflow || least->makespan >= below) return std::nullopt;
  }
  Verdict verdict = judge(shape, proposal);
  if (verdict.rejection || verdict.makespan >= below) return std::nullopt;
  return verdict;
}

Candidate Evaluator::make_candidate(const Shape& shape, const Verdict& verdict) {
  Candidate candidate;
  candidate.plan = plan_of(shape, verdict.proposal);
  candidate.makespan = verdict.makespan;
  candidate.memory = verdict.memory;
  candidate.extrapolated = verdict.extrapolated;
  if (verdict.rejection && verdict.rejection->why == Rejection::Why::kRefused) {
    candidate.infeasible = Infeasible{verdict.rejection->sentence, DeviceId{}, Bytes{}, Bytes{}};
    return candidate;
  }
  candidate.infeasible = find_overflow(candidate.memory, setting_.cluster());
  return candidate;
}

// True if the search could propose such a shape.
bool Evaluator::offers(const Shape& shape) const {
  const std::vector<int>& sizes = options_.micro_batch_sizes;
  return std::find(sizes.begin(), sizes.end(), shape.cell.micro_batch_size) != sizes.end() &&
         shape.cell.used() <= space_.devices && (!shape.variant.cached || space_.cached > 0);
}

// Simulates a plan that is a shape's, with cuts and shares of its own, by its groups; none if it is
// not.
std::optional<StepOutcome> Evaluator::simulate_by_groups(const Plan& plan) {
  std::optional<Shape> shape = find_shape(plan);
  if (!shape || !offers(*shape)) return std::nullopt;
  for (int& a = shape->variant.arrangement; a < device_classes_.arrangements(); ++a) {
    const auto proposal = proposer_.read(*shape, plan);
    if (!proposal || plan_of(*shape, *proposal) != plan) continue;
    if (!GroupSimulation::applies(*shape, *proposal, options_)) return std::nullopt;
    return simulate(*shape, *proposal);
  }
  return std::nullopt;
}

Candidate Evaluator::judge_given(Plan plan) {
  plan.mask = options_.mask;
  plan.model_hash = hash_;
  Candidate candidate;
  auto outcome = simulate_by_groups(plan);
  if (!outcome) outcome = simulate_whole(plan);
  candidate.plan = std::move(plan);
  candidate.makespan = outcome->makespan;
  candidate.extrapolated = outcome->extrapolated;
  if (outcome->refused) {
    candidate.infeasible = Infeasible{*outcome->refused, DeviceId{}, Bytes{}, Bytes{}};
    return candidate;
  }
  candidate.memory = std::move(outcome->memory);
  candidate.infeasible = find_overflow(candidate.memory, setting_.cluster());
  return candidate;
}

void Evaluator::add_bounds(Candidate& candidate) const {
  if (candidate.memory.empty()) return;  // refused
  candidate.bounds = find_bounds(candidate.plan, setting_);
}

Candidate Evaluator::judge_whole(const Shape& shape) {
  std::optional<Candidate> best;
  for (const Proposal& proposal : proposer_.propose(shape)) {
    ++simulated_;
    Candidate candidate = judge_plan(plan_of(shape, proposal), setting_,
                                     {.clip = options_.clip, .overlap = options_.overlap});
    if (!best || comes_before(candidate, *best)) best = std::move(candidate);
  }
  return std::move(*best);
}

}  // namespace frazil
