#include "exec/train/plans/plan_finder.h"

#include <algorithm>
#include <utility>

#include "exec/train/cache_control.h"
#include "planner/plan/commit_round.h"
#include "planner/prediction/plan_notation.h"
#include "planner/prediction/ranking.h"
#include "planner/search/advice.h"
#include "planner/search/rankings/rank_plans.h"
#include "planner/trajectory/trajectory_candidates.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// True if `a` is faster than `b` per sample.
bool is_faster_by_sample(const Candidate& a, const Candidate& b) {
  __extension__ using Wide = __int128;
  return Wide{a.makespan.count()} * b.plan.batch_size <
         Wide{b.makespan.count()} * a.plan.batch_size;
}

std::optional<Plan> best_of(const Ranking& ranking, const std::vector<DeviceId>& devices) {
  const Candidate* const best = ranking.best();
  if (!best) return std::nullopt;
  return on_devices(best->plan, devices);
}

}  // namespace

PlanFinder::PlanFinder(const TrainOptions& options, std::int64_t samples,
                       std::vector<DeviceId> devices)
    : options_(options), samples_(samples) {
  set_devices(std::move(devices));
}

void PlanFinder::set_devices(std::vector<DeviceId> devices) {
  devices_ = std::move(devices);
  present_ = keep_devices(options_.cluster, devices_);
  search_ = std::make_unique<PlanSearch>(Setting{options_.profile, present_});
}

void PlanFinder::note_held(const Plan& plan) {
  if (first_pipelines_ == 0) first_pipelines_ = parallel_shape(plan).replicas;
}

SearchOptions PlanFinder::question(const FreezeMask& mask, bool caches) const {
  SearchOptions search = ranking_options();
  if (!options_.schedules.empty()) search.schedules = options_.schedules;
  search.batch_size = options_.config.batch_size;
  search.micro_batch_sizes = {options_.config.micro_batch_size};
  search.mask = mask;
  search.reduction = options_.config.reduction;
  search.clip = options_.config.optimizer.clip_norm > 0;
  search.max_replicas = options_.max_replicas;
  search.cache = caches;
  return search;
}

Plan PlanFinder::make_named(const FreezeMask& mask, bool caches) const {
  const Setting setting{options_.profile, present_};
  return on_devices(make_run_plan(*options_.planner, setting, question(mask, caches)), devices_);
}

std::optional<Plan> PlanFinder::find(const FreezeMask& mask, bool caches) {
  if (options_.planner) {
    try {
      return make_named(mask, caches);
    } catch (const InfeasibleError&) {
      return std::nullopt;
    }
  }
  if (std::optional<Plan> plan = find_grown(mask, caches)) return plan;
  return best_of(rank_plans(*search_, question(mask, caches), kNoisePpm), devices_);
}

Plan PlanFinder::find_or_explain(const FreezeMask& mask) {
  const bool caches = options_.config.cache.is_on();
  if (options_.planner) return make_named(mask, caches);
  if (const std::optional<Plan> plan = find_grown(mask, caches)) return *plan;
  const SearchOptions search = question(mask, caches);
  const Ranking ranking = rank_plans(*search_, search, kNoisePpm);
  if (const std::optional<Plan> plan = best_of(ranking, devices_)) return *plan;
  throw InfeasibleError(explain_no_plan(options_.profile, {present_, search}, ranking));
}

std::optional<FoundPlans> PlanFinder::find_both(const FreezeMask& mask) {
  const std::optional<Plan> plan = find(mask, options_.config.cache.is_on());
  if (!plan) return std::nullopt;
  return FoundPlans{*plan, plan->cache_frozen_prefix ? find(mask, false) : std::nullopt};
}

std::vector<Plan> PlanFinder::find_candidates(const FreezeMask& mask) {
  const CandidateQuestion asked{.search = without_efforts(question(mask, /*caches=*/false)),
                                .may_cache = options_.config.cache.is_on()};
  std::vector<Plan> found;
  try {
    add_candidates(*search_, {options_.profile, present_}, asked, found);
  } catch (const InfeasibleError&) {
    found.clear();
  }
  return found;
}

std::optional<FoundPlans> PlanFinder::find_both_on(const std::vector<DeviceId>& devices,
                                                   const FreezeMask& mask) const {
  if (options_.config.batch_growth == BatchGrowth::kWithPipelines) return std::nullopt;
  return PlanFinder(options_, samples_, devices).find_both(mask);
}

// A step of a run whose batch grows takes as many batches as there are times the pipelines of the
// first plan.
std::optional<Plan> PlanFinder::find_grown(const FreezeMask& mask, bool caches) {
  constexpr int kLooksAt = 32;  // of the best plans for each batch
  if (options_.config.batch_growth != BatchGrowth::kWithPipelines) return std::nullopt;
  if (first_pipelines_ == 0) return std::nullopt;
  const int first = first_pipelines_;
  const int devices = static_cast<int>(devices_.size());
  const std::int64_t whole_batches = samples_ / options_.config.batch_size;
  const int allowed =
      options_.max_replicas > 0 ? std::min(options_.max_replicas, devices) : devices;
  const std::int64_t most = std::min<std::int64_t>(allowed / first, whole_batches);
  std::optional<Candidate> fastest;
  for (int growth = 1; growth <= std::max<std::int64_t>(1, most); ++growth) {
    SearchOptions search = question(mask, caches);
    search.batch_size *= growth;
    search.max_replicas = std::min(growth * first + first - 1, allowed);
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

bool PlanFinder::fits(const Plan& plan) const {
  return !judge_plan(plan, {options_.profile, options_.cluster},
                     options_.config.optimizer.clip_norm > 0)
              .infeasible;
}

bool PlanFinder::is_there(const Plan& plan) const {
  const std::vector<DeviceId> used = list_used_devices(plan);
  return std::includes(devices_.begin(), devices_.end(), used.begin(), used.end());
}

Plan PlanFinder::cache_prefix(const Plan& plan) const {
  Plan without = plan;
  without.cache_frozen_prefix = false;
  if (!options_.config.cache.is_on()) return without;
  return with_cached_prefix(plan, options_.profile).value_or(without);
}

}  // namespace frazil
