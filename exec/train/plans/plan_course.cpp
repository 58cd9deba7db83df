#include "exec/train/plans/plan_course.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "exec/data/augmentation.h"
#include "planner/search/rankings/rank_plans.h"
#include "planner/transitions/cache_residency.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// The planner looks for plans under each mask before the first step.
constexpr std::size_t kMostMasks = 100;

// Returns the masks from a step on, each with its steps; none if there are too many different ones.
std::vector<ForecastSegment> list_segments(const std::vector<TracedMask>& forecast, Step from,
                                           Step end) {
  std::vector<ForecastSegment> segments;
  std::set<std::string> different;
  for (std::size_t i = 0; i < forecast.size(); ++i) {
    const Step next = std::min(end, i + 1 < forecast.size() ? forecast[i + 1].step : end);
    const Step first = std::max(from, forecast[i].step);
    if (first >= next) continue;
    segments.push_back({first, next - first, forecast[i].mask});
    different.insert(forecast[i].mask.text());
  }
  if (different.size() > kMostMasks) segments.clear();
  return segments;
}

// Features in bfloat16 take half the bytes that the planner counts, so that a tier holds twice as
// many and moves them twice as fast.
CacheTier tier_of(Bytes limit, const Link& link, FeaturePrecision precision) {
  if (precision == FeaturePrecision::kFloat32) return {limit, link};
  return {limit * 2, {link.latency, BytesPerSecond{link.bandwidth.count * 2}}};
}

std::optional<FeatureStore> find_store(const CacheConfig& config, std::int64_t samples) {
  if (!config.is_on()) return std::nullopt;
  return FeatureStore{samples, tier_of(config.memory, config.memory_link, config.precision),
                      tier_of(config.disk, config.disk_link, config.precision)};
}

bool may_follow(const TrainOptions& options) {
  const RunConfig& config = options.config;
  const bool always_caches =
      config.cache.is_on() && config.cache.admission == CacheConfig::Admission::kAlways;
  return options.elastic && !options.planner && config.replan == Replanning::kTrajectory &&
         config.batch_growth == BatchGrowth::kNone && !always_caches;
}

SearchOptions question_of(const PlanFinder& finder, const RunShape& run) {
  return without_efforts(finder.question(FreezeMask::all_active(run.blocks), /*caches=*/false));
}

TransitionOverhead without_asking(TransitionOverhead overhead) {
  overhead.plan = Duration{0};
  return overhead;
}

}  // namespace

PlanCourse::PlanCourse(const TrainOptions& options, const RunShape& run, std::int64_t samples,
                       PlanFinder& finder)
    : options_(options),
      run_(run),
      samples_(samples * count_variants(options.config.augmentation).value_or(1)),
      finder_(finder) {
  is_on_ = may_follow(options);
  if (!is_on_) return;
  forecast_ = foresee_masks(options.config.freeze, run);
  const FreezeMask all = FreezeMask::all_active(run.blocks);
  is_on_ = !forecast_ || forecast_->size() != 1 || forecast_->front().mask != all;
}

void PlanCourse::begin(const Origin& origin, const FreezeMask& mask,
                       const std::optional<TransitionOverhead>& overhead) {
  end();
  origin_ = origin;
  if (!foresee(overhead)) go_without_forecast(mask, overhead);
}

// Returns whether the masks are known. They are not if no plan fits under one of them, for then the
// freeze authority declines that mask.
bool PlanCourse::foresee(const std::optional<TransitionOverhead>& overhead) {
  if (!forecast_) return false;
  const std::vector<ForecastSegment> segments =
      list_segments(*forecast_, origin_->step, run_.steps);
  if (segments.empty()) return false;
  TrajectoryOptions asked;
  asked.search = question_of(finder_, run_);
  asked.store = find_store(options_.config.cache, samples_);
  asked.before = origin_->before;
  if (asked.before) asked.before->plan = from_devices(asked.before->plan, origin_->devices);
  asked.compares = false;
  try {
    auto foreseen = std::make_unique<Foreseen>(Foreseen{finder_.present()});
    foreseen->planner = std::make_unique<TrajectoryPlanner>(
        Setting{options_.profile, foreseen->present}, segments, asked);
    const bool is_known = origin_->overhead_known && overhead;
    foreseen->planned =
        foreseen->planner->plan(is_known ? without_asking(*overhead) : TransitionOverhead{});
    foreseen_ = std::move(foreseen);
  } catch (const InfeasibleError&) {
    return false;
  }
  if (!origin_->overhead_known && overhead) set_overhead(*overhead);
  return true;
}

// The rule begins in the plan that goes on, or in the fastest.
void PlanCourse::go_without_forecast(const FreezeMask& mask,
                                     const std::optional<TransitionOverhead>& overhead) {
  const std::vector<Plan>& found = find_candidates(mask);
  if (found.empty()) return;
  const Plan first =
      origin_->before ? from_devices(origin_->before->plan, origin_->devices) : found.front();
  online_ = std::make_unique<Online>(
      Online{.present = finder_.present(), .first = first, .mask = mask, .next = origin_->step});
  if (overhead) begin_rule(*overhead);
}

void PlanCourse::begin_rule(const TransitionOverhead& overhead) {
  online_->plans.emplace(Setting{options_.profile, online_->present},
                         OnlineOptions{.search = question_of(finder_, run_),
                                       .overhead = without_asking(overhead),
                                       .store = find_store(options_.config.cache, samples_)},
                         online_->first);
  online_->plans->begin(online_->mask, find_candidates(online_->mask));
}

const std::vector<Plan>& PlanCourse::find_candidates(const FreezeMask& mask) {
  const auto known = candidates_.find(mask.text());
  if (known != candidates_.end()) return known->second;
  return candidates_[mask.text()] = finder_.find_candidates(mask);
}

void PlanCourse::end() {
  origin_.reset();
  foreseen_.reset();
  online_.reset();
  candidates_.clear();
  segment_ = 0;
}

void PlanCourse::set_overhead(const TransitionOverhead& overhead) {
  if (online_ && !online_->plans) begin_rule(overhead);
  if (!foreseen_ || origin_->overhead_known) return;
  TrajectoryPlanner& planner = *foreseen_->planner;
  const TransitionOverhead known = without_asking(overhead);
  foreseen_->hindsight = planner.plan(known).best.total;
  foreseen_->planned = planner.plan(known, foreseen_->planned.best.states.front());
}

std::optional<PlanCourse::Hold> PlanCourse::hold(const FreezeMask& mask, Step step) {
  std::optional<Hold> hold = foreseen_ ? hold_foreseen(mask, step) : hold_online(mask, step);
  if (!hold) end();
  return hold;
}

std::optional<PlanCourse::Hold> PlanCourse::hold_foreseen(const FreezeMask& mask, Step step) {
  const std::vector<ForecastSegment>& segments = foreseen_->planned.segments;
  const auto after =
      std::find_if(segments.begin(), segments.end(),
                   [&](const ForecastSegment& segment) { return segment.step > step; });
  if (after == segments.begin() || std::prev(after)->mask != mask) return std::nullopt;
  segment_ = static_cast<std::size_t>(std::prev(after) - segments.begin());
  return hold_in(segment_);
}

std::optional<PlanCourse::Hold> PlanCourse::hold_online(const FreezeMask& mask, Step step) {
  if (!online_) return std::nullopt;
  if (mask != online_->mask) {
    const std::vector<Plan>& found = find_candidates(mask);
    if (found.empty()) return std::nullopt;
    online_->mask = mask;
    if (online_->plans) online_->plans->begin(mask, found);
  }
  (void)leaves(step);
  Hold hold{on_devices(online_->plans ? online_->plans->held() : online_->first, origin_->devices)};
  hold.plan.mask = mask;
  return hold;
}

bool PlanCourse::leaves(Step step) {
  if (!online_ || !online_->plans || step < online_->next) return false;
  const std::size_t before = online_->plans->rule().state();
  online_->plans->serve(step + 1 - online_->next);
  online_->next = step + 1;
  return online_->plans->rule().state() != before;
}

std::optional<PlanCourse::Hold> PlanCourse::find_next(const FreezeMask& mask) const {
  if (!foreseen_ || segment_ + 1 >= foreseen_->planned.segments.size()) return std::nullopt;
  if (foreseen_->planned.segments[segment_ + 1].mask != mask) return std::nullopt;
  return hold_in(segment_ + 1);
}

bool PlanCourse::knows(const FreezeMask& mask) const {
  return foresees(mask) || candidates_.contains(mask.text());
}

bool PlanCourse::foresees(const FreezeMask& mask) const {
  if (!foreseen_) return false;
  const std::vector<ForecastSegment>& segments = foreseen_->planned.segments;
  return std::any_of(segments.begin(), segments.end(),
                     [&](const ForecastSegment& segment) { return segment.mask == mask; });
}

void PlanCourse::learn(const FreezeMask& mask, std::vector<Plan> found) {
  candidates_.emplace(mask.text(), std::move(found));
}

// A trajectory over masks that have come as they were foreseen is the cheapest there is, but for
// its first plan where that was held before anybody knew what a transition costs.
std::optional<PlanRegret> PlanCourse::find_regret() const {
  if (foreseen_) {
    const PlannedTrajectory& planned = foreseen_->planned;
    return PlanRegret{.from = origin_->step,
                      .predicted = planned.best.total,
                      .hindsight = foreseen_->hindsight.value_or(planned.best.total),
                      .transitions = static_cast<int>(planned.transitions.size())};
  }
  if (!online_ || !online_->plans) return std::nullopt;
  const WorkFunction& rule = online_->plans->rule();
  return PlanRegret{.from = origin_->step,
                    .predicted = rule.paid(),
                    .hindsight = rule.hindsight(),
                    .transitions = rule.changes(),
                    .guarantee = PlanRegret::Guarantee{rule.factor(), rule.additive()}};
}

PlanCourse::Hold PlanCourse::hold_in(std::size_t segment) const {
  const PlannedTrajectory& planned = foreseen_->planned;
  Hold hold{on_devices(planned.candidates[planned.best.states[segment]], origin_->devices),
            HeldCache{}};
  hold.plan.mask = planned.segments[segment].mask;
  if (planned.caches) hold.cache = planned.caches->walk.caches[segment];
  return hold;
}

}  // namespace frazil
