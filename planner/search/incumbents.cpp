#include "planner/search/incumbents.h"

#include <algorithm>
#include <utility>

namespace frazil {

Duration Incumbents::cost_of_steps(Duration makespan) const {
  return options_.held ? time_of_steps(makespan, options_.held->steps) : makespan;
}

bool Incumbents::beat(Duration makespan, int devices, int stages) const {
  return is_measured() && std::tuple(cost_of_steps(makespan), devices, stages) > worst_;
}

bool Incumbents::beat_with_the_best(Duration makespan) const {
  return is_full() && cost_of_steps(makespan) >= plans_.front().cost;
}

Duration Incumbents::most_makespan() const {
  if (!is_measured()) return kNever;
  const Duration worst = std::get<Duration>(worst_);
  return options_.held ? worst / options_.held->steps : worst;
}

bool Incumbents::is_slower(Duration makespan) const {
  return is_full() && cost_of_steps(makespan) > plans_.back().cost;
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
  find_worst();
  return gone;
}

void Incumbents::find_worst() {
  if (plans_.empty()) return;
  const Entry& worst = best_alone_ ? plans_.front() : plans_.back();
  const Plan& plan = worst.plan.candidate.plan;
  worst_ = {worst.cost, count_devices(plan),
            static_cast<int>(plan.pipelines.front().stages.size())};
}

void Incumbents::seek_best_alone() {
  best_alone_ = true;
  find_worst();
}

std::vector<KeptPlan> Incumbents::take_plans() {
  std::vector<KeptPlan> plans;
  plans.reserve(plans_.size());
  for (Entry& entry : plans_) plans.push_back(std::move(entry.plan));
  plans_.clear();
  return plans;
}

bool Incumbents::holds(const Plan& plan) const {
  return std::any_of(plans_.begin(), plans_.end(),
                     [&](const Entry& entry) { return entry.plan.candidate.plan == plan; });
}

bool Incumbents::holds(const Shape& shape) const {
  return std::any_of(plans_.begin(), plans_.end(),
                     [&](const Entry& entry) { return entry.plan.shape == shape; });
}

bool Incumbents::drop(const Shape& shape) {
  return std::erase_if(plans_, [&](const Entry& entry) { return entry.plan.shape == shape; }) > 0;
}

Duration Incumbents::least_makespan() const {
  Duration least = kNever;
  for (const Entry& entry : plans_) least = std::min(least, entry.plan.candidate.makespan);
  return least;
}

}  // namespace frazil
