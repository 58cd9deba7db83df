#include "exec/train/plans/replanner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include "exec/data/augmentation.h"
#include "exec/devices/steady_time.h"
#include "planner/plan/activity.h"
#include "planner/transitions/predict_transition.h"
#include "profiles/error.h"

namespace frazil {

// A search that is made ahead. It belongs to its thread until is_done.
struct Replanner::Expected {
  explicit Expected(FreezeMask expected_mask) : mask(std::move(expected_mask)) {}

  FreezeMask mask;
  std::optional<FoundPlans> found = std::nullopt;
  std::optional<std::vector<Plan>> candidates = std::nullopt;  // asked for in place of `found`
  std::atomic<bool> is_done = false;
};

void Replanner::set_devices(std::vector<DeviceId> devices) {
  if (devices == finder_.devices()) return;
  take_expected();
  finder_.set_devices(std::move(devices));
  course_.end();
  forget_answers();
}

void Replanner::renew_costs(const std::function<void()>& change) {
  take_expected();
  course_.end();
  change();
  finder_.set_devices(std::vector<DeviceId>(finder_.devices()));
  forget_answers();
}

std::optional<Plan> Replanner::find_best(const FreezeMask& mask, bool caches) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<Plan> plan = finder_.find(mask, caches);
  add_time(since(start));
  ++searches_;
  return plan;
}

void Replanner::forget_answers() {
  plans_.clear();
  uncached_.clear();
  predicted_.clear();
  without_room_.clear();
}

void Replanner::take(const FreezeMask& mask, const FoundPlans& found) {
  plans_.insert_or_assign(mask.text(), found.plan);
  if (found.plan.cache_frozen_prefix) uncached_.insert_or_assign(mask.text(), found.uncached);
  is_ready_ = true;
}

void Replanner::expect(const FreezeMask& mask) {
  if (!held_ || !options_.elastic || plans_.count(mask.text()) > 0) return;
  if (course_.knows(mask)) return;
  if (expected_) {
    if (expected_->mask == mask || !expected_->is_done) return;
    take_expected();
  }
  expected_ = std::make_shared<Expected>(mask);
  jobs_.start([this, expected = expected_, on_course = course_.origin().has_value()] {
    try {
      if (on_course) {
        expected->candidates = finder_.find_candidates(expected->mask);
      } else {
        expected->found = finder_.find_both(expected->mask);
      }
    } catch (const std::exception&) {
      // A guess ends no run: go_on() meets the same error and reports it.
    }
    expected->is_done = true;
  });
}

std::optional<Plan> Replanner::find_expected(const FreezeMask& mask) {
  if (const auto next = course_.find_next(mask)) return as_held(*next);
  if (expected_ && expected_->is_done) take_expected();
  const auto known = plans_.find(mask.text());
  if (known == plans_.end()) return std::nullopt;
  return known->second;
}

void Replanner::take_expected() {
  if (!expected_) return;
  jobs_.wait();
  const std::shared_ptr<const Expected> expected = std::exchange(expected_, nullptr);
  if (expected->candidates && course_.origin()) {
    course_.learn(expected->mask, *expected->candidates);
  }
  if (!expected->found) return;
  const auto& [plan, uncached] = *expected->found;
  plans_.emplace(expected->mask.text(), plan);
  if (plan.cache_frozen_prefix) uncached_.emplace(expected->mask.text(), uncached);
}

// What an earlier process has held is found by taking its steps again.
void Replanner::begin_course(const FreezeMask& mask, Step step) {
  PlanCourse::Origin origin{
      .step = step, .devices = finder_.devices(), .overhead_known = overhead_.has_value()};
  if (held_ && finder_.is_there(*held_)) {
    origin.before = TrajectoryOptions::Before{*held_, held_->mask};
  }
  const std::optional<Restored> restored = std::exchange(restored_, std::nullopt);
  if (held_ || !restored || restored->origin.devices != origin.devices) {
    course_.begin(origin, mask, overhead_);
    return;
  }
  const std::vector<TracedMask>& masks = restored->masks;
  const Step first = restored->origin.step;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const Step end = std::min(step, i + 1 < masks.size() ? masks[i + 1].step : step);
    if (end <= std::max(first, masks[i].step)) continue;
    if (!course_.origin()) course_.begin(restored->origin, masks[i].mask, overhead_);
    if (!course_.hold(masks[i].mask, end - 1)) break;
  }
  if (!course_.origin()) course_.begin(origin, mask, overhead_);
}

std::optional<Plan> Replanner::follow(const FreezeMask& mask, Step step) {
  planned_cache_.reset();
  if (!course_.is_on() || std::exchange(is_ready_, false)) return std::nullopt;
  const auto start = std::chrono::steady_clock::now();
  if (!course_.origin() || !course_.knows(mask)) {
    take_expected();
    if (!course_.origin() || !course_.knows(mask)) ++searches_;
  }
  if (!course_.origin()) begin_course(mask, step);
  const std::optional<PlanCourse::Hold> hold = course_.hold(mask, step);
  add_time(since(start));
  if (!hold) return std::nullopt;
  planned_cache_ = hold->cache;
  return as_held(*hold);
}

bool Replanner::leaves(Step step) { return course_.leaves(step); }

Plan Replanner::as_held(const PlanCourse::Hold& hold) const {
  const bool caches = !hold.cache || hold.cache->features.depth > 0;
  return caches ? finder_.cache_prefix(hold.plan) : hold.plan;
}

void Replanner::set_overhead(const TransitionOverhead& overhead) {
  const auto start = std::chrono::steady_clock::now();
  overhead_ = overhead;
  course_.set_overhead(overhead);
  asking_ += since(start);
}

void Replanner::add_time(Duration time) {
  time_ += time;
  asking_ += time;
}

std::optional<PlanRegret> Replanner::find_regret() const {
  std::optional<PlanRegret> regret = course_.find_regret();
  if (regret) regret->asking = asking_;
  return regret;
}

// Throws InfeasibleError if the planner that leads the run has no plan under a mask that is known
// to come, before the run has begun.
void Replanner::check_masks(Step step) {
  if (held_ || !options_.planner || !options_.elastic || !masks_) return;
  for (const TracedMask& mask : *masks_) {
    if (mask.step > step) (void)answer(mask.mask);
  }
}

// Returns whether it is the plan to go on with.
bool Replanner::take_restored(const FreezeMask& mask) {
  const std::optional<Plan> plan = std::exchange(restored_held_, std::nullopt);
  if (held_ || !plan || !finder_.is_there(*plan) || !finder_.fits(*plan)) return false;
  held_ = plan;
  return held_->mask == mask;
}

const Plan& Replanner::go_on(const FreezeMask& mask, Step step) {
  if (take_restored(mask)) {
    finder_.note_held(*held_);
    return *held_;
  }
  check_masks(step);
  if (!held_ && options_.plan && finder_.is_there(*options_.plan)) {
    if (options_.plan->cache_frozen_prefix && !options_.config.cache.is_on()) {
      throw InputError(options_.plan_file, 0, "a plan with a cached frozen prefix",
                       "a run with a cache");
    }
    held_ = options_.plan;
    held_->mask = mask;
    held_ = finder_.cache_prefix(*held_);
  } else if (std::optional<Plan> plan = follow(mask, step)) {
    held_ = std::move(plan);
  } else {
    held_ = answer(mask);
  }
  finder_.note_held(*held_);
  predicted_.clear();
  return *held_;
}

Plan Replanner::answer(const FreezeMask& mask) {
  if (held_ && !options_.elastic && finder_.is_there(*held_)) {
    Plan plan = *held_;
    plan.mask = mask;
    plan = finder_.cache_prefix(plan);
    if (finder_.fits(plan)) return plan;
  }
  const auto start = std::chrono::steady_clock::now();
  if (plans_.count(mask.text()) == 0) {
    // Waiting for a search that is being made counts as a search.
    if (expected_ && expected_->mask == mask && !expected_->is_done) ++searches_;
    take_expected();
  }
  const auto known = plans_.find(mask.text());
  if (known != plans_.end()) {
    add_time(since(start));
    return known->second;
  }
  Plan plan = finder_.find_or_explain(mask);
  add_time(since(start));
  ++searches_;
  return plans_[mask.text()] = std::move(plan);
}

std::optional<Plan> Replanner::find_uncached() {
  ENSURE(held_.has_value(), "a plan in place of the held");
  if (!held_->cache_frozen_prefix) return held_;
  if (!options_.elastic && finder_.is_there(*held_)) {
    Plan plan = *held_;
    plan.cache_frozen_prefix = false;
    if (!finder_.fits(plan)) return std::nullopt;
    return plan;
  }
  take_expected();
  const auto known = uncached_.find(held_->mask.text());
  if (known != uncached_.end()) return known->second;
  const auto start = std::chrono::steady_clock::now();
  // No plan fits without a cache if the cached prefix is what makes it fit.
  std::optional<Plan> plan = finder_.find(held_->mask, /*caches=*/false);
  add_time(since(start));
  ++searches_;
  return uncached_[held_->mask.text()] = std::move(plan);
}

const Plan& Replanner::hold(const Plan& plan) {
  held_ = plan;
  predicted_.clear();
  return *held_;
}

bool Replanner::has_room(const FreezeMask& mask) {
  ENSURE(held_.has_value(), "a run goes on from some plan");
  if (options_.planner) return true;  // go_on() says why it has none
  if (course_.origin() && !course_.knows(mask)) take_expected();
  if (course_.origin() && course_.has_plans(mask)) return true;
  if (without_room_.count(mask.text()) > 0) return false;
  try {
    (void)answer(mask);
    return true;
  } catch (const InfeasibleError&) {
    without_room_.insert(mask.text());
    return false;
  }
}

Duration Replanner::time_search(Duration most, ProcessorCaches& caches) {
  constexpr Duration kLong = std::chrono::milliseconds(50);
  ENSURE(held_.has_value(), "there is something to ask for");
  if (most.count() == 0 || most > kLong) return most;
  take_expected();
  std::array<Duration, 3> times;
  for (Duration& time : times) {
    caches.fill();
    const auto start = std::chrono::steady_clock::now();
    (void)finder_.find(held_->mask, options_.config.cache.is_on());
    time = since(start);
  }
  std::sort(times.begin(), times.end());
  return times[1];
}

PredictedTransition Replanner::predict(const FreezeMask& mask, Step epoch, Step left) {
  ENSURE(held_.has_value(), "a transition is from some plan");
  auto known = predicted_.find(mask.text());
  if (known == predicted_.end()) {
    const StepOptions step{.clip = options_.config.optimizer.clip_norm > 0};
    const Plan next = answer(mask);
    const Predicted predicted{
        predict_transition(*held_, next, {options_.profile, options_.cluster}, step,
                           overhead_.value_or(TransitionOverhead{})),
        predict_fill(*held_, next, {options_.profile, options_.cluster}, step) /
            batches_of(next, options_.config)};
    known = predicted_.emplace(mask.text(), predicted).first;
  }
  PredictedTransition predicted = known->second.full;
  predicted.saved_per_step /= batches_of(*held_, options_.config);
  const int variants = count_variants(options_.config.augmentation).value_or(1);
  const Step filling = std::min(epoch * variants, left);
  predicted.cost += known->second.fill * filling;
  return predicted;
}

TransitionTimes Replanner::predict_times(const Plan& before) const {
  const TransitionOverhead overhead = overhead_.value_or(TransitionOverhead{});
  const TransitionCost cost =
      price_transition(before, *held_, {options_.profile, options_.cluster},
                       find_activity(options_.profile, before.mask), overhead);
  const Duration start = std::max(overhead.start, cost.total - cost.move - overhead.plan);
  return {.plan = overhead.plan * searches_,
          .move = std::max(overhead.move, cost.move),
          .start = start};
}

}  // namespace frazil
