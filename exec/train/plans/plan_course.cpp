#include "exec/train/plans/plan_course.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "exec/data/augmentation.h"
#include "planner/search/rank_plans.h"
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

TransitionOverhead without_asking(TransitionOverhead overhead) {
  overhead.plan = Duration{0};
  return overhead;
}

}  // namespace

bool follows_trajectories(const TrainOptions& options) {
  const RunConfig& config = options.config;
  const bool always_caches =
      config.cache.is_on() && config.cache.admission == CacheConfig::Admission::kAlways;
  return options.elastic && config.replan == Replanning::kTrajectory &&
         config.batch_growth == BatchGrowth::kNone && !always_caches;
}

PlanCourse::PlanCourse(const TrainOptions& options, const RunShape& run, std::int64_t samples)
    : options_(options),
      run_(run),
      samples_(samples * count_variants(options.config.augmentation).value_or(1)) {
  if (follows_trajectories(options)) forecast_ = foresee_masks(options.config.freeze, run);
}

TrajectoryOptions PlanCourse::question(const PlanFinder& finder) const {
  TrajectoryOptions asked;
  asked.search =
      without_efforts(finder.question(FreezeMask::all_active(run_.blocks), /*caches=*/false));
  asked.store = find_store(options_.config.cache, samples_);
  asked.before = origin_->before;
  asked.compares = false;
  return asked;
}

void PlanCourse::begin(const Origin& origin, const PlanFinder& finder,
                       const std::optional<TransitionOverhead>& overhead) {
  end();
  origin_ = origin;
  if (!forecast_) return;
  const std::vector<ForecastSegment> segments = list_segments(*forecast_, origin.step, run_.steps);
  if (segments.empty()) return;
  try {
    auto asked = std::make_unique<Asked>(Asked{finder.present()});
    asked->planner = std::make_unique<TrajectoryPlanner>(Setting{options_.profile, asked->present},
                                                         segments, question(finder));
    const bool is_known = origin.overhead_known && overhead;
    asked->planned =
        asked->planner->plan(is_known ? without_asking(*overhead) : TransitionOverhead{});
    asked_ = std::move(asked);
  } catch (const InfeasibleError&) {
    // The freeze authority declines a mask that no plan fits, so another mask comes.
    return;
  }
  if (!origin.overhead_known && overhead) set_overhead(*overhead);
}

void PlanCourse::end() {
  origin_.reset();
  asked_.reset();
  segment_ = 0;
}

void PlanCourse::set_overhead(const TransitionOverhead& overhead) {
  if (!asked_ || origin_->overhead_known) return;
  asked_->planned =
      asked_->planner->plan(without_asking(overhead), asked_->planned.best.states.front());
}

std::optional<PlanCourse::Hold> PlanCourse::hold(const FreezeMask& mask, Step step) {
  if (!asked_) return std::nullopt;
  const std::vector<ForecastSegment>& segments = asked_->planned.segments;
  const auto after =
      std::find_if(segments.begin(), segments.end(),
                   [&](const ForecastSegment& segment) { return segment.step > step; });
  if (after == segments.begin() || std::prev(after)->mask != mask) {
    asked_.reset();  // what is planned for other masks is worth nothing
    return std::nullopt;
  }
  segment_ = static_cast<std::size_t>(std::prev(after) - segments.begin());
  return hold_in(segment_);
}

std::optional<PlanCourse::Hold> PlanCourse::find_next(const FreezeMask& mask) const {
  if (!asked_ || segment_ + 1 >= asked_->planned.segments.size()) return std::nullopt;
  if (asked_->planned.segments[segment_ + 1].mask != mask) return std::nullopt;
  return hold_in(segment_ + 1);
}

bool PlanCourse::foresees(const FreezeMask& mask) const {
  if (!asked_) return false;
  const std::vector<ForecastSegment>& segments = asked_->planned.segments;
  return std::any_of(segments.begin(), segments.end(),
                     [&](const ForecastSegment& segment) { return segment.mask == mask; });
}

PlanCourse::Hold PlanCourse::hold_in(std::size_t segment) const {
  const PlannedTrajectory& planned = asked_->planned;
  Hold hold{on_devices(planned.candidates[planned.best.states[segment]], origin_->devices), {}};
  hold.plan.mask = planned.segments[segment].mask;
  if (planned.caches) hold.cache = planned.caches->walk.caches[segment];
  return hold;
}

}  // namespace frazil
