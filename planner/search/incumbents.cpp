#include "planner/search/incumbents.h"

#include <algorithm>
#include <utility>

namespace frazil {

Duration Incumbents::cost_of_steps(Duration makespan) const {
  return options_.held ? time_of_steps(makespan, options_.held->steps) : makespan;
}

bool Incumbents::beat(Duration makespan, int devices, int stages) const {
  return is_full() && std::tuple(cost_of_steps(makespan), devices, stages) > worst_;
}

bool Incumbents::beat_with_the_best(Duration makespan) const {
  return is_full() && cost_of_steps(makespan) >= plans_.front().cost;
}

Duration Incumbents::most_makespan() const {
  if (!is_full()) return kNever;
  const Duration worst = std::get<Duration>(worst_);
  return options_.held ? worst / options_.held->steps : worst;
}

bool Incumbents::is_slower(Duration makespan) const {
  return is_full() && cost_of_steps(makespan) > std::get<Duration>(worst_);
}

// Plans that are otherwise equal are in the order in which listing everything would meet them.
Incumbents::Order Incumbents::order_of(const KeptPlan& plan, Duration cost) const {
  RankingKey key = ranking_key(plan.candidate);
  std::get<Duration>(key) = cost;
  const ShapeCell cell = plan.shape ? plan.shape->cell : ShapeCell{0, 0, 0, 0};
  return {std::move(key), cell.devices, cell.micro_batch_size,
          cell.replicas,  cell.longer,  plan.ordinal};
}

std::optional<KeptPlan> Incumbents::keep(KeptPlan plan) {
  Duration cost = cost_of_steps(plan.candidate.makespan);
  if (options_.held) cost += options_.held->transition_time(plan.candidate.plan);
  Entry entry{order_of(plan, cost), std::move(plan), cost};
  const auto place =
      std::upper_bound(plans_.begin(), plans_.end(), entry,
                       [](const Entry& a, const Entry& b) { return a.order < b.order; });
  plans_.insert(place, std::move(entry));
  std::optional<KeptPlan> gone;
  if (options_.keep > 0 && plans_.size() > static_cast<std::size_t>(options_.keep)) {
    gone = std::move(plans_.back().plan);
    plans_.pop_back();
  }
  const Plan& worst = plans_.back().plan.candidate.plan;
  worst_ = {plans_.back().cost, count_devices(worst),
            static_cast<int>(worst.pipelines.front().stages.size())};
  return gone;
}

std::vector<Candidate> Incumbents::take() {
  std::vector<Candidate> candidates;
  for (Entry& entry : plans_) candidates.push_back(std::move(entry.plan.candidate));
  plans_.clear();
  return candidates;
}

}  // namespace frazil
