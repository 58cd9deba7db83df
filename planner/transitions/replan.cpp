#include "planner/transitions/replan.h"

#include <utility>

namespace frazil {

std::optional<Replan> replan(PlanSearch& search, Setting setting, const HeldState& held,
                             SearchOptions options) {
  const Activity trained = find_activity(setting.profile(), held.trained);
  const auto cost_to = [&](const Plan& plan) {
    return price_transition(held.plan, plan, setting, trained, held.overhead);
  };
  options.held =
      HeldPlan{held.plan, held.steps, [&](const Plan& plan) { return cost_to(plan).total; }};
  Ranking ranking = search.search(options);
  if (ranking.best() == nullptr) return std::nullopt;
  Replan answer;
  answer.next = std::move(ranking.candidates.front());
  answer.cost = cost_to(answer.next.plan);
  Plan unmasked = answer.next.plan;
  unmasked.mask = held.plan.mask;
  unmasked.model_hash = held.plan.model_hash;
  answer.stays = unmasked == held.plan;
  answer.left = ranking.left;
  return answer;
}

}  // namespace frazil
