#include "planner/transitions/replan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "planner/search/moved_cuts.h"

namespace frazil {

std::optional<Replan> replan(PlanSearch& search, Setting setting, const HeldState& held,
                             SearchOptions options, int moved_plans) {
  const Activity trained = find_activity(setting.profile(), held.trained);
  const auto cost_to = [&](const Plan& plan) {
    return price_transition(held.plan, plan, setting, trained, held.overhead);
  };
  options.keep = std::max(1, moved_plans);
  options.held =
      HeldPlan{held.plan, held.steps, [&](const Plan& plan) { return cost_to(plan).total; }};
  Ranking ranking = search.search(options);
  if (ranking.best() == nullptr) return std::nullopt;
  if (moved_plans > 0) {
    Ranking moved = ranking;
    move_cuts(moved, setting, options);
    std::move(moved.candidates.begin(), moved.candidates.end(),
              std::back_inserter(ranking.candidates));
  }
  const auto steps_and_transition = [&](const Candidate& candidate) {
    return time_of_steps(candidate.makespan, held.steps) + cost_to(candidate.plan).total;
  };
  const auto best = std::min_element(ranking.candidates.begin(), ranking.candidates.end(),
                                     [&](const Candidate& a, const Candidate& b) {
                                       return steps_and_transition(a) < steps_and_transition(b);
                                     });
  Replan answer;
  answer.next = std::move(*best);
  answer.cost = cost_to(answer.next.plan);
  Plan unmasked = answer.next.plan;
  unmasked.mask = held.plan.mask;
  unmasked.model_hash = held.plan.model_hash;
  answer.stays = unmasked == held.plan;
  answer.left = ranking.left;
  return answer;
}

}  // namespace frazil
