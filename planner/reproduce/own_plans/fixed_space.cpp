#include "planner/reproduce/own_plans/fixed_space.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "planner/bounds/group_bound.h"
#include "planner/bounds/order_table.h"
#include "planner/search/evaluate.h"
#include "planner/trajectory/trajectory_candidates.h"

namespace frazil {
namespace {

SearchOptions options_under(const OwnTraining& training, const FreezeMask& mask) {
  SearchOptions options = search_options(training);
  options.mask = mask;
  options.cache = true;
  return options;
}

// The search under the mask of one segment.
struct MaskSearch {
  MaskSearch(Setting setting, const OwnTraining& training, const ForecastSegment& segment,
             OrderTable& orders)
      : options(options_under(training, segment.mask)),
        prefix(
            count_frozen_prefix(setting.profile(), find_activity(setting.profile(), segment.mask))),
        steps(segment.steps),
        evaluator(setting, options, orders) {}

  SearchOptions options;
  int prefix;  // layers that may be cached
  Step steps;
  Evaluator evaluator;
};

// A proposal beside the search that made it, whose device classes it names.
struct OwnedProposal {
  Proposal proposal;
  MaskSearch* owner;
};

std::vector<LayerSpan> spans_of(const std::vector<LayerId>& cuts, int layers) {
  std::vector<LayerSpan> spans;
  int first = 0;
  for (const LayerId cut : cuts) {
    spans.push_back({first, cut.value});
    first = cut.value;
  }
  spans.push_back({first, layers});
  return spans;
}

// Returns how many layers lie in the first stage of every pipeline.
int count_first(const Proposal& proposal, int layers) {
  int least = layers;
  for (const GroupClass& group : proposal.classes) {
    if (!group.cuts.empty()) least = std::min(least, group.cuts.front().value);
  }
  return least;
}

// True if parameters, gradients and optimizer state of some device exceed its memory.
bool lacks_room(const GroupLoads& loads, const ChainSums& sums, const Cluster& cluster) {
  std::vector<Bytes> state(loads.devices.size());
  for (const StageLoad& stage : loads.stages) {
    state[stage.device] += sums.parameters(stage.span) + sums.optimizer(stage.span) +
                           sums.updated_parameters(stage.span);
  }
  for (std::size_t d = 0; d < state.size(); ++d) {
    if (state[d] > cluster.devices[d].memory_limit) return true;
  }
  return false;
}

// The part of the space that has so many pipelines of so many devices.
class EqualPipelines {
 public:
  EqualPipelines(const OwnTraining& training, const std::vector<ForecastSegment>& segments,
                 int devices, int replicas)
      : training_(training),
        layers_(static_cast<int>(training.profile.layers.size())),
        cluster_(make_own_cluster(training, replicas > 1 ? devices : 1)),
        devices_(devices),
        replicas_(replicas) {
    for (const ForecastSegment& segment : segments) {
      searches_.emplace_back(Setting{training.profile, cluster_}, training, segment, orders_);
    }
  }

  void list(Duration below, FixedSpace& space) {
    for (const int size : training_.micro_batch_sizes) {
      const ShapeCell cell{.devices = devices_, .replicas = replicas_, .micro_batch_size = size};
      const SearchSpace& shapes = searches_.front().evaluator.space();
      if (replicas_ > shapes.most_replicas(size)) continue;
      for (const ShapeVariant& variant : list_variants(cell, shapes)) {
        if (variant.cached) continue;
        add({cell, variant}, below, space);
      }
    }
  }

 private:
  void add(const Shape& shape, Duration below, FixedSpace& space) {
    for (const OwnedProposal& own : propose(shape)) {
      ++space.listed;
      std::optional<BoundedPlan> bounded = bound(shape, own, below);
      if (!bounded) continue;
      bounded->plan = as_candidate(make_plan(
          shape, own.proposal, own.owner->evaluator.device_classes().groups(shape.cell, 0),
          own.owner->options, layers_));
      space.plans.push_back(std::move(*bounded));
    }
  }

  // Returns the bounds without the plan; none if it surely takes `below` or more, or does not fit.
  std::optional<BoundedPlan> bound(const Shape& shape, const OwnedProposal& own, Duration below) {
    BoundedPlan bounded;
    for (MaskSearch& search : searches_) {
      const Duration step = bound_step(search, shape, own);
      if (step >= kFarAway) return std::nullopt;
      bounded.least.push_back(step);
      bounded.total += step * search.steps;
      if (bounded.total >= below) return std::nullopt;
    }
    return bounded;
  }

  // Returns the proposals of all masks, equal ones once.
  std::vector<OwnedProposal> propose(const Shape& shape) {
    std::vector<OwnedProposal> proposals;
    std::set<std::vector<std::vector<LayerId>>> known;
    for (MaskSearch& search : searches_) {
      for (const bool cached : {false, true}) {
        Shape asked = shape;
        asked.variant.cached = cached;
        const int stages = devices_ * shape.variant.chunks;
        if (cached && (search.prefix == 0 || stages > layers_ - search.prefix + 1)) continue;
        for (Proposal& proposal : search.evaluator.propose(asked)) {
          std::vector<std::vector<LayerId>> cuts;
          for (const GroupClass& group : proposal.classes) cuts.push_back(group.cuts);
          if (!known.insert(std::move(cuts)).second) continue;
          proposals.push_back({std::move(proposal), &search});
        }
      }
    }
    return proposals;
  }

  // Returns kFarAway if the plan does not fit.
  Duration bound_step(MaskSearch& search, const Shape& shape, const OwnedProposal& own) const {
    Shape masked = shape;
    masked.variant.cached =
        search.prefix > 0 && search.prefix <= count_first(own.proposal, layers_);
    const Evaluator& evaluator = search.evaluator;
    const ChainSums& sums = evaluator.sums_of(shape.cell.micro_batch_size, masked.variant.cached);
    const Owners owners = owners_of(masked, own.proposal);
    Duration least{0};
    for (const GroupClass& group : own.proposal.classes) {
      const Cluster& cluster = own.owner->evaluator.device_classes().cluster(group.device_class);
      const GroupLoads loads = add_up_loads(masked, group, spans_of(group.cuts, layers_), sums,
                                            cluster, evaluator.work_bounds(), owners);
      if (lacks_room(loads, sums, cluster)) return kFarAway;
      least = std::max(least, bound_group(masked.variant, loads).time);
    }
    return least;
  }

  const OwnTraining& training_;
  int layers_;
  Cluster cluster_;
  int devices_;
  int replicas_;
  OrderTable orders_;
  std::deque<MaskSearch> searches_;  // by segment
};

}  // namespace

FixedSpace list_fixed_plans(const OwnTraining& training,
                            const std::vector<ForecastSegment>& segments, Duration below) {
  FixedSpace space;
  const auto devices = static_cast<int>(make_own_cluster(training, 1).devices.size());
  for (int length = 1; length <= devices; ++length) {
    for (int replicas = devices / length; replicas >= 1; --replicas) {
      EqualPipelines(training, segments, length, replicas).list(below, space);
    }
  }
  std::stable_sort(space.plans.begin(), space.plans.end(),
                   [](const BoundedPlan& a, const BoundedPlan& b) { return a.total < b.total; });
  return space;
}

}  // namespace frazil
