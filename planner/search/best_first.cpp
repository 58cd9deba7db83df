#include "planner/search/best_first.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "planner/search/incumbents.h"
#include "planner/search/nearest_miss.h"
#include "planner/search/rejections.h"
#include "planner/search/search_cuts.h"
#include "planner/search/search_node.h"
#include "planner/search/shared_stages.h"
#include "planner/search/warm_start.h"

namespace frazil {
namespace {

using Node = SearchNode;
using Kind = SearchNode::Kind;

// Returns time x (1 + ppm / 10^6). Requires: the time is at most half of kNever.
Duration scale_up(Duration time, std::int64_t ppm) { return time + scale_ppm(time, ppm); }

// Returns the most that one layer takes: parameters, one set of gradients, the optimizer's state.
Bytes find_largest_layer(const ChainSums& sums) {
  Bytes most;
  for (int l = 0; l < sums.layers(); ++l) {
    const LayerSpan one{l, l + 1};
    most =
        std::max(most, sums.parameters(one) + sums.updated_parameters(one) + sums.optimizer(one));
  }
  return most;
}

class BestFirst {
 public:
  BestFirst(Evaluator& evaluator, const SearchOptions& options, bool only_fits)
      : evaluator_(evaluator),
        options_(options),
        only_fits_(only_fits),
        kept_(options),
        variants_(evaluator.space()) {}

  Ranking search() {
    const std::vector<ShapeCell> cells = list_cells(evaluator_.space());
    std::vector<Node> nodes;
    for (const ShapeCell& cell : cells) {
      const ChainSums& sums = evaluator_.sums_of(cell.micro_batch_size);
      nodes.push_back(
          make_cell_node(Kind::kCell, cell, evaluator_.work_bounds().bound(sums, cell)));
    }
    if (options_.held) hold();
    if (!only_fits_) warm_start(cells);
    for (const Node& node : nodes) {
      const ShapeCell& cell = node.shape.cell;
      push(node);
      if (!options_.joint || cell.replicas == 1) continue;
      const ChainSums& sums = evaluator_.sums_of(cell.micro_batch_size);
      const NamedBound longer = evaluator_.work_bounds().bound_longer(sums, cell);
      push(make_cell_node(Kind::kLonger, cell, longer));
    }
    while (!queue_.empty() && !(only_fits_ && !kept_.empty()) && !is_close(queue_.front()) &&
           !is_spent()) {
      std::pop_heap(queue_.begin(), queue_.end());
      const Node node = queue_.back();
      queue_.pop_back();
      if (!best_alone_ && evaluator_.actions() > options_.runner_up_effort) {
        best_alone_ = true;
        kept_.seek_best_alone();
        if (is_beaten(node)) {
          reject_by_bound(node);
          continue;
        }
      }
      open(node);
    }
    if (!queue_.empty() && !is_close(queue_.front()) && is_spent()) climb();
    // The node with the lowest bound is beaten, or close, and so are all other nodes; or the search
    // has ended early.
    for (const Node& node : queue_) leave(node);
    for (const Node& node : close_) leave(node);
    return finish();
  }

  // After a search that found no plan that fits.
  Bytes least_missing() const { return nearest_.missing(); }

 private:
  void warm_start(const std::vector<ShapeCell>& cells) {
    take(pick_cells(evaluator_, cells));
    // Bounds say less about groups that are not alike.
    if (!evaluator_.device_classes().groups_are_alike()) climb();
  }

  // Goes from the best plan so far to better ones near it, as long as there are some.
  void climb() {
    while (!kept_.empty() && kept_.best().shape) {
      const Shape best = *kept_.best().shape;
      take(list_neighbours(best.cell, evaluator_.space()));
      if (kept_.best().shape == best) return;
    }
  }

  void take(const std::vector<ShapeCell>& cells) {
    std::size_t left = 4;
    for (const PromisingShape& shape :
         find_promising(evaluator_, variants_, cells, kept_.most_makespan())) {
      const Node node = make_shape_node(shape.shape, shape.ordinal, shape.bound);
      if (is_close(node) || left == 0) break;
      if (judged_.count(shape.shape) > 0) continue;
      leave_open(node, evaluator_.bound_by_shares(shape.shape));
      judge(node);
      --left;
    }
  }

  void push(const Node& node) {
    if (is_beaten(node)) {
      reject_by_bound(node);
      return;
    }
    if (is_close(node)) {
      close_.push_back(node);
      return;
    }
    queue_.push_back(node);
    std::push_heap(queue_.begin(), queue_.end());
  }

  static void raise(NamedBound& bound, const NamedBound& other) {
    if (other.time > bound.time) bound = other;
  }

  // True if the effort is spent; the search goes on as long as nothing fits.
  bool is_spent() const { return options_.effort > 0 && cut_ >= options_.effort && !kept_.empty(); }

  bool is_beaten(const Node& node) const {
    return kept_.beat(node.bound.time, node.devices, node.stages);
  }

  // True if the node is beaten, or could be better than the best plan only by less than the gap
  // that is allowed.
  bool is_close(const Node& node) const {
    if (is_beaten(node)) return true;
    return options_.gap_ppm > 0 && node.bound.time < kNever / 2 &&
           kept_.beat_with_the_best(scale_up(node.bound.time, options_.gap_ppm));
  }

  // Accounts for a node that is left at the end: it is beaten by a plan found since, or was never
  // looked at.
  void leave(const Node& node) {
    if (node.is_shape() && judged_.count(node.shape) > 0) return;
    if (is_beaten(node)) {
      reject_by_bound(node);
    } else if (!only_fits_) {
      left_.candidates += count(node);
      left_.at_least = std::min(left_.at_least, node.bound.time);
      if (node.kind < Kind::kCut) left_whole_ = std::min(left_whole_, node.bound.time);
    }
  }

  // Keeps a shape for the search of its cuts; `bound` holds whatever they are.
  void leave_open(const Node& node, const NamedBound& bound) {
    if (options_.cut_effort == 0 || only_fits_) return;
    if (bound.time < kept_.least_makespan())
      open_.push_back({node.shape, node.ordinal, bound.time});
  }

  // Makes the held plan the first incumbent if it fits.
  void hold() {
    Candidate held = evaluator_.judge_given(options_.held->plan);
    if (held.infeasible) return;
    held_ = held.plan;
    kept_.keep({std::move(held), std::nullopt, -1});
  }

  void open(const Node& node) {
    switch (node.kind) {
      case Kind::kCell:
        open_cell(node.shape.cell);
        break;
      case Kind::kLonger:
        for (const ShapeCell& cell : list_longer(node.shape.cell, evaluator_.space())) {
          const ChainSums& sums = evaluator_.sums_of(cell.micro_batch_size);
          push(make_cell_node(Kind::kCell, cell, evaluator_.work_bounds().bound(sums, cell)));
        }
        break;
      case Kind::kClass:
        open_class(node);
        break;
      case Kind::kShared:
        cut(node);
        break;
      case Kind::kCut:
        order(node);
        break;
      case Kind::kOrdered:
        judge(node);
        break;
    }
  }

  // Bounds a shape by its order of work. While nothing fits, a shape that misses memory is
  // simulated, because what it misses must be known to the byte, unless another shape surely misses
  // less.
  void order(Node node) {
    const auto bound = evaluator_.bound_by_order(node.shape, kept_.most_makespan());
    if (!bound) return judge(node);
    if (const auto* rejection = std::get_if<Rejection>(&*bound)) {
      if (!only_fits_ && kept_.empty() && !nearest_.misses_less_than(*rejection))
        return judge(node);
      if (only_fits_) miss(node.shape, *rejection);
      rejected_.add(node.shape, true, 1, *rejection);
      return;
    }
    if (only_fits_) return judge(node);
    raise(node.bound, std::get<NamedBound>(*bound));
    node.kind = Kind::kOrdered;
    // This bound is mostly exact, so the shape with the lowest one so far soon is the best plan so
    // far.
    if (node.bound.time < lowest_order_ && !is_close(node)) {
      lowest_order_ = node.bound.time;
      return judge(node);
    }
    push(node);
  }

  void open_cell(const ShapeCell& cell) {
    const ChainSums& sums = evaluator_.sums_of(cell.micro_batch_size);
    const VariantList& variants = variants_.of(cell);
    const Bytes needed = evaluator_.work_bounds().least_memory(sums, cell);
    const Device& best = evaluator_.device_classes().best_device();
    if (needed > best.memory_limit) {
      Rejection rejection;
      rejection.why = Rejection::Why::kMemory;
      rejection.needed = needed;
      rejection.available = best.memory_limit;
      rejected_.add({cell, {}}, false, count_variants(variants_, cell), rejection);
      if (count_variants(variants_, cell) > 0) miss({cell, variants.variants.front()}, rejection);
      return;
    }
    for (const VariantList::Class& own : variants.classes) {
      const auto first = static_cast<std::size_t>(own.first);
      if (!own.what.one_way && cell.longer == 0 && cell.devices % 2 != 0) {
        refuse_odd({cell, variants.variants[first]}, own.variants);
        continue;
      }
      const ChainSums& own_sums = evaluator_.sums_of(cell.micro_batch_size, own.what.cached);
      Node node{
          .bound = evaluator_.work_bounds().bound(own_sums, cell, own.what, kept_.most_makespan()),
          .devices = cell.used(),
          .stages = cell.devices,
          .kind = Kind::kClass,
          .shape = {cell, variants.variants[first]},
          .ordinal = 0};
      push(node);
    }
  }

  void refuse_odd(const Shape& shape, std::int64_t variants) {
    Rejection rejection;
    rejection.why = Rejection::Why::kRefused;
    rejection.sentence = "schedules that run both ways take an even number of devices";
    rejected_.add(shape, false, variants, rejection);
    miss(shape, rejection);
  }

  void open_class(const Node& node) {
    const ShapeCell& cell = node.shape.cell;
    const VariantList& list = variants_.of(cell);
    const std::vector<ShapeVariant>& variants = list.variants;
    const VariantClass wanted = class_of(node.shape.variant);
    for (std::size_t v = 0; v < variants.size(); ++v) {
      if (list.class_of[v] != wanted) continue;
      const Shape shape{cell, variants[v]};
      if (evaluator_.device_classes().repeats(cell, variants[v].arrangement)) continue;
      if (judged_.count(shape) > 0) continue;
      Node single = make_shape_node(shape, v, node.bound);
      raise(single.bound, evaluator_.bound_by_shares(shape));
      push(single);
    }
  }

  void cut(Node node) {
    ++cut_;
    const auto bound = evaluator_.bound(node.shape);
    if (!evaluator_.is_hopeless(node.shape)) leave_open(node, node.bound);
    if (const auto* rejection = std::get_if<Rejection>(&bound)) {
      rejected_.add(node.shape, true, 1, *rejection);
      miss(node.shape, *rejection);
      return;
    }
    raise(node.bound, std::get<NamedBound>(bound));
    node.kind = Kind::kCut;
    // What bounds leave out differs between schedules, so the shape with the lowest bound so far of
    // each schedule is looked at.
    const auto lowest = lowest_cut_.try_emplace(node.shape.variant.schedule, kNever).first;
    if (!only_fits_ && node.bound.time < lowest->second && !is_close(node)) {
      lowest->second = node.bound.time;
      return order(node);
    }
    push(node);
  }

  void judge(const Node& node) {
    judged_.insert(node.shape);
    Verdict verdict = evaluator_.judge(node.shape);
    if (verdict.rejection) {
      rejected_.add(node.shape, true, 1, *verdict.rejection);
      miss(node.shape, *verdict.rejection);
      return;
    }
    if (kept_.is_slower(verdict.makespan)) {
      rejected_.add_slower(node.shape, verdict.makespan);
      return;
    }
    Candidate candidate = evaluator_.make_candidate(node.shape, verdict);
    if (candidate.plan == held_) return;
    const auto gone = kept_.keep({std::move(candidate), node.shape, node.ordinal});
    if (gone && gone->shape) rejected_.add_slower(*gone->shape, gone->candidate.makespan);
  }

  void miss(const Shape& shape, const Rejection& rejection) {
    if (kept_.empty()) nearest_.take(shape, rejection);
  }

  std::int64_t count(const Node& node) {
    return count_shapes(node, evaluator_.space(), variants_, judged_);
  }

  void reject_by_bound(const Node& node) {
    if (only_fits_) return;
    Shape shape = node.shape;
    // The node is recorded by its longest cell, so that its shapes count as plans on that many
    // devices.
    if (node.kind == Kind::kLonger) shape.cell.longer = most_longer(shape.cell, evaluator_.space());
    rejected_.add_bounded(shape, node.is_shape(), count(node), node.bound);
  }

  Ranking finish() {
    Ranking ranking;
    if (options_.cut_effort > 0 && !only_fits_) {
      // What a shape holds may be estimated too high for its proposals, so other cuts may fit where
      // none of these does.
      SearchedCuts cuts = search_cuts(evaluator_, options_, std::move(open_), kept_, rejected_);
      cuts.at_least = std::min(cuts.at_least, left_whole_);
      left_.at_least = std::min(left_.at_least, cuts.at_least);
      if (!kept_.empty()) ranking.cuts = cuts;
    }
    if (!only_fits_) ranking.shared = search_shared_stages(evaluator_, options_, kept_, rejected_);
    for (KeptPlan& plan : kept_.take_plans())
      ranking.candidates.push_back(std::move(plan.candidate));
    if (ranking.candidates.empty() && nearest_.shape() && !only_fits_) {
      const Shape& nearest = *nearest_.shape();
      ranking.candidates.push_back(evaluator_.make_candidate(nearest, evaluator_.judge(nearest)));
      rejected_.take_back(nearest);
    }
    for (Candidate& candidate : ranking.candidates) evaluator_.add_bounds(candidate);
    const bool feasible = ranking.best() != nullptr;
    ranking.rejected = rejected_.list(feasible ? ranking.candidates.back().makespan : Duration{0});
    ranking.simulated = evaluator_.simulated();
    if (left_.candidates > 0) ranking.left = left_;
    ranking.best_alone = best_alone_;
    return ranking;
  }

  Evaluator& evaluator_;
  const SearchOptions& options_;
  bool only_fits_;
  std::vector<Node> queue_;  // a heap
  std::vector<Node> close_;  // nodes that were close when they came up
  Incumbents kept_;
  std::optional<Plan> held_;                     // if it fits
  bool best_alone_ = false;                      // the effort for runners-up is spent
  std::int64_t cut_ = 0;                         // shapes so far
  Duration lowest_order_ = kNever;               // of those judged at once
  std::map<ScheduleKind, Duration> lowest_cut_;  // of those whose order was looked at at once
  std::set<Shape> judged_;
  Rejections rejected_;
  NotLookedAt left_{0, kNever};
  Duration left_whole_ = kNever;  // at_least of the nodes whose cuts were not chosen yet
  std::vector<OpenShape> open_;   // the shapes whose cuts were chosen
  NearestMiss nearest_;
  Variants variants_;
};

}  // namespace

Ranking search_best_first(Evaluator& evaluator, const SearchOptions& options) {
  return BestFirst(evaluator, options, /*only_fits=*/false).search();
}

Fit find_fit(Evaluator& evaluator, const SearchOptions& options) {
  // Some device holds the largest layer, so a search is not needed where none can.
  const Bytes largest = find_largest_layer(evaluator.sums_of(options.micro_batch_sizes.front()));
  const Bytes limit = evaluator.device_classes().best_device().memory_limit;
  if (largest > limit) return {false, largest - limit};
  BestFirst search(evaluator, options, /*only_fits=*/true);
  if (search.search().best() != nullptr) return {true, Bytes{}};
  return {false, search.least_missing()};
}

}  // namespace frazil
