#include "planner/trajectory/online_plans.h"

#include <algorithm>
#include <utility>

#include "planner/trajectory/step_times.h"
#include "planner/trajectory/trajectory_candidates.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kManyPlans = 64;

}  // namespace

OnlinePlans::OnlinePlans(Setting setting, OnlineOptions options, const Plan& held)
    : setting_(setting),
      options_(std::move(options)),
      trained_(find_activity(setting.profile(), FreezeMask::all_active(held.mask.blocks()))),
      plans_{as_candidate(held)},
      rule_(Prices{{Duration{0}}}, 0) {}

Duration OnlinePlans::price(const Plan& from, const Plan& to) const {
  const auto total = [&](const Plan& a, const Plan& b) {
    return price_transition(a, b, setting_, trained_, options_.overhead).total;
  };
  return std::max(total(from, to), total(to, from));
}

void OnlinePlans::add(const Plan& plan) {
  const Plan candidate = as_candidate(plan);
  if (std::find(plans_.begin(), plans_.end(), candidate) != plans_.end()) return;
  std::vector<Duration> prices;
  prices.reserve(plans_.size());
  for (const Plan& other : plans_) prices.push_back(price(other, candidate));
  rule_.add_state(prices);
  plans_.push_back(candidate);
}

// Returns what a step takes that reads its frozen prefix where the plan can cache it in some tier,
// or one that caches nothing if that is faster.
Duration OnlinePlans::step_time(StepTimes& times, std::size_t plan, int depth) const {
  Duration time = times.exact(0, plan);
  const ModelProfile& profile = setting_.profile();
  const std::optional<Bytes> of_sample =
      options_.store && depth > 0 ? find_feature_bytes(profile, depth) : std::nullopt;
  if (!of_sample) return time;
  for (const FeatureTier tier : {FeatureTier::kMemory, FeatureTier::kDisk}) {
    if (!find_room(*options_.store, tier, profile, depth)) continue;
    const Duration read = transfer_time(options_.store->tier(tier), *of_sample, plans_[plan]);
    time = std::min(time, std::max(times.exact(0, plan, depth), read));
  }
  return time;
}

void OnlinePlans::begin(const FreezeMask& mask, const std::vector<Plan>& found) {
  for (const Plan& plan : found) {
    add(plan);
    if (plans_.size() >= kManyPlans) break;
  }
  task_.clear();
  const std::vector<FreezeMask> masks{mask};
  StepTimes times(plans_, masks, setting_, options_.search);
  const int depth =
      count_frozen_prefix(setting_.profile(), find_activity(setting_.profile(), mask));
  for (std::size_t p = 0; p < plans_.size(); ++p) task_.push_back(step_time(times, p, depth));
}

const Plan& OnlinePlans::serve(Step steps) {
  ENSURE(!task_.empty() && steps > 0, "a mask, and steps under it");
  rule_.serve(task_, steps);
  return held();
}

}  // namespace frazil
