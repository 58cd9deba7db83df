#include "planner/search/cut_search.h"

#include <algorithm>
#include <utility>

namespace frazil {
namespace {

// What a look at a stage and its layers costs, beside timing one action.
constexpr std::int64_t kActionsOfALook = 4;

std::int64_t count_actions(const Shape& shape, const Proposal& proposal, bool by_groups) {
  std::int64_t actions = 0;
  for (const GroupClass& group : proposal.classes) {
    actions += count_actions(shape, group) * (by_groups ? 1 : group.groups);
  }
  if (!by_groups) return actions * GroupSimulation::kTaskGraph;
  return actions * GroupSimulation::price_of_order(shape.variant.schedule);
}

}  // namespace

std::optional<Verdict> CutSearch::try_cuts(const Shape& shape, const Proposal& proposal,
                                           Duration below) {
  const bool by_groups = GroupSimulation::applies(shape, proposal, evaluator_.space().options);
  actions_left_ -= count_actions(shape, proposal, by_groups);
  ++tried_;
  return evaluator_.judge_below(shape, proposal, below);
}

// Moves the cuts first .. last of a class by `step` layers; true, and the verdict is replaced, if
// the shape then takes less.
bool CutSearch::move(const Shape& shape, Verdict& verdict, std::size_t of_class, std::size_t first,
                     std::size_t last, int step) {
  Proposal proposal = verdict.proposal;
  std::vector<LayerId>& cuts = proposal.classes[of_class].cuts;
  for (std::size_t c = first; c <= last; ++c) cuts[c].value += step;
  const int joined = shape.variant.cached ? evaluator_.space().cached - 1 : 0;
  const int before = first == 0 ? joined : cuts[first - 1].value;
  const int behind = last + 1 == cuts.size() ? evaluator_.space().layers : cuts[last + 1].value;
  if (cuts[first].value <= before || cuts[last].value >= behind) return false;
  if (is_spent()) return false;
  std::optional<Verdict> other = try_cuts(shape, proposal, verdict.makespan);
  if (!other) return false;
  verdict = std::move(*other);
  return true;
}

bool CutSearch::climb(const Shape& shape, Verdict& verdict, std::int64_t most) {
  kept_back_ = actions_left_ - most;
  const Duration begun = verdict.makespan;
  // A run of neighbouring cuts takes a layer from one stage to a far one. Runs are tried by length.
  const auto move_some = [&] {
    for (std::size_t length = 1;; ++length) {
      bool is_long = true;
      bool moved = false;
      for (std::size_t c = 0; c < verdict.proposal.classes.size(); ++c) {
        const std::size_t cuts = verdict.proposal.classes[c].cuts.size();
        for (std::size_t first = 0; first + length <= cuts; ++first) {
          is_long = false;
          for (const int step : {-1, 1}) {
            while (move(shape, verdict, c, first, first + length - 1, step)) moved = true;
          }
        }
      }
      if (moved) return true;
      if (is_long || is_spent()) return false;
    }
  };
  while (move_some()) continue;
  return verdict.makespan < begun;
}

// A way down the tree of cuts: stage after stage, class after class.
struct CutSearch::Descent {
  const Shape& shape;
  std::vector<StageLimits> limits;
  Proposal proposal;
  Duration below;
  std::optional<Verdict> fastest = std::nullopt;
  Duration left = kNever;  // what was not looked at takes no less
};

void CutSearch::descend(Descent& descent, std::size_t of_class, int stage, int first) {
  if (of_class == descent.limits.size()) {
    std::optional<Verdict> found = try_cuts(descent.shape, descent.proposal, descent.below);
    if (!found) return;
    descent.below = found->makespan;
    descent.fastest = std::move(found);
    return;
  }
  const StageLimits& limits = descent.limits[of_class];
  if (stage + 1 == limits.stages()) {
    actions_left_ -= kActionsOfALook;
    if (limits.rest_at_least(stage, first) >= descent.below) return;
    return descend(descent, of_class + 1, 0, 0);
  }
  std::vector<std::pair<Duration, int>> ends;
  for (int end = std::max(first + 1, limits.least_first(stage + 1));
       end <= limits.most_first(stage + 1); ++end) {
    const Duration rest = limits.rest_at_least(stage + 1, end);
    if (rest >= descent.below) continue;
    actions_left_ -= kActionsOfALook;
    const Duration least = std::max(rest, limits.at_least(stage, {first, end}));
    if (least < descent.below) ends.emplace_back(least, end);
  }
  std::sort(ends.begin(), ends.end());
  for (const auto& [least, end] : ends) {
    if (least >= descent.below) return;
    if (is_spent()) {
      descent.left = std::min(descent.left, least);
      return;
    }
    descent.proposal.classes[of_class].cuts[static_cast<std::size_t>(stage)] = LayerId{end};
    descend(descent, of_class, stage + 1, end);
  }
}

CutSearch::Answer CutSearch::find_below(const Shape& shape, Duration below, std::int64_t most) {
  kept_back_ = actions_left_ - most;
  const Proposal& dealt = evaluator_.deal(shape);
  Descent descent{shape, evaluator_.limit_stages(shape, dealt), dealt, below};
  Duration least = kNoTime;
  for (StageLimits& limits : descent.limits) {
    limits.bound_all_cuts();
    const std::int64_t width = limits.layers() - limits.stages() + 1;
    actions_left_ -= kActionsOfALook * limits.stages() * width * width / 2;
    least = std::max(least, limits.at_least());
  }
  if (least < below) descend(descent, 0, 0, 0);
  const Duration at_least = std::min(descent.below, std::max(least, descent.left));
  return {std::move(descent.fastest), at_least};
}

}  // namespace frazil
