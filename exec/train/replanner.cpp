#include "exec/train/replanner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include "exec/data/augmentation.h"
#include "exec/devices/steady_time.h"
#include "exec/train/cache_control.h"
#include "planner/bounds/shape.h"
#include "planner/plan/activity.h"
#include "planner/plan/commit_round.h"
#include "planner/prediction/plan_notation.h"
#include "planner/search/advice.h"
#include "planner/search/rank_plans.h"
#include "planner/transitions/predict_transition.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// True if `a` is faster than `b` per sample.
bool is_faster_by_sample(const Candidate& a, const Candidate& b) {
  __extension__ using Wide = __int128;
  return Wide{a.makespan.count()} * b.plan.batch_size <
         Wide{b.makespan.count()} * a.plan.batch_size;
}

}  // namespace

// A search that is made ahead. It belongs to its thread until is_done.
struct Replanner::Expected {
  explicit Expected(FreezeMask expected_mask) : mask(std::move(expected_mask)) {}

  FreezeMask mask;
  std::optional<Plan> plan = std::nullopt;
  std::optional<Plan> uncached = std::nullopt;  // where the plan caches; none: none fits
  std::atomic<bool> is_done = false;
};

void Replanner::set_devices(std::vector<DeviceId> devices) {
  if (devices == devices_) return;
  take_expected();
  devices_ = std::move(devices);
  present_ = keep_devices(options_.cluster, devices_);
  search_ = std::make_unique<PlanSearch>(Setting{options_.profile, present_});
  plans_.clear();
  uncached_.clear();
  predicted_.clear();
  without_room_.clear();
}

std::optional<Replanner::PlanAhead> Replanner::find_ahead(
    const FreezeMask& mask, const std::vector<DeviceId>& devices) const {
  if (options_.config.batch_growth == BatchGrowth::kWithPipelines) return std::nullopt;
  const Cluster cluster = keep_devices(options_.cluster, devices);
  PlanSearch search(Setting{options_.profile, cluster});
  const auto find = [&](bool caches) -> std::optional<Plan> {
    const Ranking ranking = rank_plans(search, question(mask, caches), kNoisePpm);
    if (const Candidate* const best = ranking.best()) return on_devices(best->plan, devices);
    return std::nullopt;
  };
  const std::optional<Plan> plan = find(options_.config.cache.is_on());
  if (!plan) return std::nullopt;
  return PlanAhead{*plan, plan->cache_frozen_prefix ? find(false) : std::nullopt};
}

void Replanner::take(const FreezeMask& mask, const PlanAhead& found) {
  plans_.insert_or_assign(mask.text(), found.plan);
  if (found.plan.cache_frozen_prefix) uncached_.insert_or_assign(mask.text(), found.uncached);
}

bool Replanner::is_there(const Plan& plan) const {
  const std::vector<DeviceId> used = list_used_devices(plan);
  return std::includes(devices_.begin(), devices_.end(), used.begin(), used.end());
}

void Replanner::expect(const FreezeMask& mask) {
  if (!held_ || !options_.elastic || plans_.count(mask.text()) > 0) return;
  if (expected_) {
    if (expected_->mask == mask || !expected_->is_done) return;
    take_expected();
  }
  expected_ = std::make_shared<Expected>(mask);
  jobs_.start([this, expected = expected_] {
    try {
      std::optional<Plan> uncached;
      std::optional<Plan> plan = find(expected->mask, options_.config.cache.is_on());
      if (plan && plan->cache_frozen_prefix) uncached = find(expected->mask, false);
      expected->uncached = std::move(uncached);
      expected->plan = std::move(plan);
    } catch (const std::exception&) {
      // A guess ends no run: go_on() meets the same error and reports it.
    }
    expected->is_done = true;
  });
}

std::optional<Plan> Replanner::find_expected(const FreezeMask& mask) {
  if (expected_ && expected_->is_done) take_expected();
  const auto known = plans_.find(mask.text());
  if (known == plans_.end()) return std::nullopt;
  return known->second;
}

void Replanner::take_expected() {
  if (!expected_) return;
  jobs_.wait();
  const std::shared_ptr<const Expected> expected = std::exchange(expected_, nullptr);
  if (!expected->plan) return;
  plans_.emplace(expected->mask.text(), *expected->plan);
  if (expected->plan->cache_frozen_prefix) {
    uncached_.emplace(expected->mask.text(), expected->uncached);
  }
}

const Plan& Replanner::go_on(const FreezeMask& mask) {
  if (!held_ && options_.plan && is_there(*options_.plan)) {
    if (options_.plan->cache_frozen_prefix && !options_.config.cache.is_on()) {
      throw InputError(options_.plan_file, 0, "a plan with a cached frozen prefix",
                       "a run with a cache");
    }
    held_ = options_.plan;
    held_->mask = mask;
    held_ = cache_prefix(*held_);
  } else {
    held_ = answer(mask);
  }
  if (first_pipelines_ == 0) first_pipelines_ = parallel_shape(*held_).replicas;
  predicted_.clear();
  return *held_;
}

Plan Replanner::answer(const FreezeMask& mask) {
  if (held_ && !options_.elastic && is_there(*held_)) {
    Plan plan = *held_;
    plan.mask = mask;
    plan = cache_prefix(plan);
    if (fits(plan)) return plan;
  }
  const auto start = std::chrono::steady_clock::now();
  if (plans_.count(mask.text()) == 0) {
    // Waiting for a search that is being made counts as a search.
    if (expected_ && expected_->mask == mask && !expected_->is_done) ++searches_;
    take_expected();
  }
  const auto known = plans_.find(mask.text());
  if (known != plans_.end()) {
    time_ += since(start);
    return known->second;
  }
  Plan plan = *find(mask, options_.config.cache.is_on(), /*explains=*/true);
  time_ += since(start);
  ++searches_;
  return plans_[mask.text()] = std::move(plan);
}

std::optional<Plan> Replanner::find_uncached() {
  ENSURE(held_.has_value(), "a plan in place of the held");
  if (!held_->cache_frozen_prefix) return held_;
  if (!options_.elastic && is_there(*held_)) {
    Plan plan = *held_;
    plan.cache_frozen_prefix = false;
    if (!fits(plan)) return std::nullopt;
    return plan;
  }
  take_expected();
  const auto known = uncached_.find(held_->mask.text());
  if (known != uncached_.end()) return known->second;
  const auto start = std::chrono::steady_clock::now();
  // No plan fits without a cache if the cached prefix is what makes it fit.
  std::optional<Plan> plan = find(held_->mask, /*caches=*/false);
  time_ += since(start);
  ++searches_;
  return uncached_[held_->mask.text()] = std::move(plan);
}

const Plan& Replanner::hold(const Plan& plan) {
  held_ = plan;
  predicted_.clear();
  return *held_;
}

bool Replanner::fits(const Plan& plan) const {
  return !judge_plan(plan, {options_.profile, options_.cluster},
                     options_.config.optimizer.clip_norm > 0)
              .infeasible;
}

bool Replanner::has_room(const FreezeMask& mask) {
  ENSURE(held_.has_value(), "a run goes on from some plan");
  if (without_room_.count(mask.text()) > 0) return false;
  try {
    (void)answer(mask);
    return true;
  } catch (const InfeasibleError&) {
    without_room_.insert(mask.text());
    return false;
  }
}

SearchOptions Replanner::question(const FreezeMask& mask, bool caches) const {
  SearchOptions search = ranking_options();
  if (!options_.schedules.empty()) search.schedules = options_.schedules;
  search.batch_size = options_.config.batch_size;
  search.micro_batch_sizes = {options_.config.micro_batch_size};
  search.mask = mask;
  search.reduction = options_.config.reduction;
  search.clip = options_.config.optimizer.clip_norm > 0;
  search.cache = caches;
  return search;
}

// Finds the plan of a run whose batch grows: a step takes as many batches as there are times the
// pipelines of the first plan.
std::optional<Plan> Replanner::find_grown(const FreezeMask& mask, bool caches) {
  constexpr int kLooksAt = 32;  // of the best plans for each batch
  const int first = first_pipelines_;
  const int devices = static_cast<int>(devices_.size());
  const std::int64_t whole_batches = samples_ / options_.config.batch_size;
  const std::int64_t most = std::min<std::int64_t>(devices / first, whole_batches);
  std::optional<Candidate> fastest;
  for (int growth = 1; growth <= std::max<std::int64_t>(1, most); ++growth) {
    SearchOptions search = question(mask, caches);
    search.batch_size *= growth;
    search.max_replicas = growth * first + first - 1;
    search.keep = kLooksAt;
    const Ranking ranking = search_->search(search);
    const auto grown = [&](const Candidate& candidate) {
      const int pipelines = parallel_shape(candidate.plan).replicas;
      return !candidate.infeasible && std::max(1, pipelines / first) == growth;
    };
    const auto best = std::find_if(ranking.candidates.begin(), ranking.candidates.end(), grown);
    if (best == ranking.candidates.end()) continue;
    if (!fastest || is_faster_by_sample(*best, *fastest)) fastest = *best;
  }
  if (!fastest) return std::nullopt;
  return on_devices(fastest->plan, devices_);
}

std::optional<Plan> Replanner::find(const FreezeMask& mask, bool caches, bool explains) {
  if (options_.config.batch_growth == BatchGrowth::kWithPipelines && first_pipelines_ > 0) {
    if (std::optional<Plan> plan = find_grown(mask, caches)) return plan;
  }
  const SearchOptions search = question(mask, caches);
  const Ranking ranking = rank_plans(*search_, search, kNoisePpm);
  if (const Candidate* const best = ranking.best()) return on_devices(best->plan, devices_);
  if (!explains) return std::nullopt;
  throw InfeasibleError(explain_no_plan(options_.profile, {present_, search}, ranking));
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
    (void)find(held_->mask, options_.config.cache.is_on());
    time = since(start);
  }
  std::sort(times.begin(), times.end());
  return times[1];
}

Plan Replanner::cache_prefix(const Plan& plan) const {
  Plan without = plan;
  without.cache_frozen_prefix = false;
  if (!options_.config.cache.is_on()) return without;
  return with_cached_prefix(plan, options_.profile).value_or(without);
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
