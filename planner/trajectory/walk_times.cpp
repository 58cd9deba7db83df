#include "planner/trajectory/walk_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/prediction/ranking.h"
#include "planner/prediction/simplicity.h"
#include "planner/trajectory/far_sums.h"
#include "planner/trajectory/plan_caches.h"
#include "planner/trajectory/priced_masks.h"
#include "planner/trajectory/step_times.h"
#include "profiles/error.h"

namespace frazil {
namespace {

std::vector<ForecastSegment> list_forecast(const std::vector<HeldSegment>& walk) {
  std::vector<ForecastSegment> forecast;
  forecast.reserve(walk.size());
  for (const HeldSegment& held : walk) forecast.push_back(held.segment);
  return forecast;
}

// The different plans and masks of a walk, for which steps are simulated once. The prefix of a
// segment is what it caches, for no other cache is asked about.
struct WalkTable {
  PricedMasks masks;
  std::vector<Plan> plans = {};
  std::vector<std::size_t> plan_of = {};     // by segment
  std::vector<MaskedSegment> segments = {};  // which know their mask
};

WalkTable list_walk(Setting setting, const std::vector<HeldSegment>& walk) {
  WalkTable table{.masks = {setting, list_forecast(walk)}};
  for (std::size_t k = 0; k < walk.size(); ++k) {
    const auto place = std::find(table.plans.begin(), table.plans.end(), walk[k].plan);
    table.plan_of.push_back(static_cast<std::size_t>(place - table.plans.begin()));
    if (place == table.plans.end()) table.plans.push_back(walk[k].plan);
    table.segments.push_back(
        {walk[k].segment.steps, table.masks.of_segment(k), walk[k].cache.features.depth});
  }
  return table;
}

[[noreturn]] void refuse_segment(Setting setting, const WalkRules& rules, const HeldSegment& held) {
  Plan plan = held.plan;
  plan.mask = held.segment.mask;
  const StepOptions step{.clip = rules.search.clip, .overlap = rules.search.overlap};
  const Candidate judged = judge_plan(plan, setting, step);
  const std::string why = judged.infeasible ? judged.infeasible->reason : "its cache does not fit";
  throw InfeasibleError(fmt::format("under the mask {} {}", plan.mask.text(), why));
}

class WalkTimer {
 public:
  WalkTimer(Setting setting, const WalkRules& rules, const std::vector<HeldSegment>& walk)
      : setting_(setting),
        rules_(rules),
        walk_(walk),
        table_(list_walk(setting, walk)),
        steps_(table_.plans, table_.masks.masks(), table_.masks.settings(), rules.search) {
    if (!rules.store) return;
    caches_.emplace(setting.profile(), table_.plans, table_.segments, *rules.store, steps_);
  }

  WalkTimes time() {
    WalkTimes times;
    ensure_caches();
    times.plans = static_cast<int>(table_.plans.size());
    for (std::size_t k = 0; k < walk_.size(); ++k) {
      RunParts parts = time_segment(k);
      times.step_times.push_back(reading_step(k));
      if (k > 0 && table_.plan_of[k] != table_.plan_of[k - 1]) {
        ++times.transitions;
        parts.transitions = time_transition(k);
      }
      times.parts += parts;
      const Duration on_devices = frazil::times(parts.total(), count_used_devices(walk_[k].plan));
      times.held_device_time = add(times.held_device_time, on_devices);
      if (times.parts.total() >= kFarAway) {
        throw InfeasibleError("its steps take longer than can be added up");
      }
    }
    times.extrapolated = is_extrapolated();
    return times;
  }

 private:
  // A step could not read what is not in the first stage of every pipeline, and a cache without
  // room would be read for nothing.
  void ensure_caches() const {
    for (std::size_t k = 0; k < walk_.size(); ++k) {
      for (const HeldFeatures& features : {walk_[k].cache.features, walk_[k].cache.source}) {
        if (features.depth == 0) continue;
        ENSURE(steps_.may_cache(table_.segments[k].mask, table_.plan_of[k], features.depth),
               "a plan that can hold its cache");
        ENSURE(rules_.store &&
                   find_room(*rules_.store, features.tier, setting_.profile(), features.depth),
               "a store with room for what is cached");
      }
      const HeldFeatures& source = walk_[k].cache.source;
      const bool was_cached =
          std::any_of(walk_.begin(), walk_.begin() + static_cast<std::ptrdiff_t>(k),
                      [&](const HeldSegment& before) { return before.cache.features == source; });
      ENSURE(source.depth == 0 || was_cached, "a source that was cached before");
    }
  }

  // Time of a step that reads what the segment caches, as if that were filled.
  Duration reading_step(std::size_t k) {
    const Duration step = caches_
                              ? caches_->step_time(k, table_.plan_of[k], walk_[k].cache.features)
                              : steps_.exact(table_.segments[k].mask, table_.plan_of[k]);
    if (step >= kFarAway) refuse_segment(setting_, rules_, walk_[k]);
    return step;
  }

  RunParts time_segment(std::size_t k) {
    const HeldCache& cache = walk_[k].cache;
    const Duration reads = reading_step(k);
    RunParts parts{.steps = times(reads, walk_[k].segment.steps)};
    const Step filling = std::min(cache.left, walk_[k].segment.steps);
    if (filling == 0) return parts;
    const Duration fills = caches_->filling_step_time(k, table_.plan_of[k], cache);
    if (fills >= kFarAway) refuse_segment(setting_, rules_, walk_[k]);
    parts.filling = (fills - reads) * filling;
    return parts;
  }

  Duration time_transition(std::size_t k) const {
    const Activity trained = find_activity(setting_.profile(), walk_[k - 1].segment.mask);
    return price_transition(walk_[k - 1].plan, walk_[k].plan, setting_, trained, rules_.overhead)
        .total;
  }

  bool is_extrapolated() const {
    const StepOptions step{.clip = rules_.search.clip, .overlap = rules_.search.overlap};
    return std::any_of(table_.plans.begin(), table_.plans.end(), [&](const Plan& plan) {
      return simulate_plan(plan, setting_, step).extrapolated;
    });
  }

  Setting setting_;
  const WalkRules& rules_;
  const std::vector<HeldSegment>& walk_;
  WalkTable table_;
  StepTimes steps_;
  std::optional<CachePlanner> caches_;  // none without a store
};

}  // namespace

RunParts& RunParts::operator+=(const RunParts& more) {
  steps = add(steps, more.steps);
  filling = add(filling, more.filling);
  transitions = add(transitions, more.transitions);
  return *this;
}

WalkTimes time_walk(Setting setting, const WalkRules& rules, const std::vector<HeldSegment>& walk) {
  ENSURE(!walk.empty(), "some segment");
  return WalkTimer(setting, rules, walk).time();
}

std::vector<HeldSegment> list_held_segments(const PlannedTrajectory& planned) {
  std::vector<HeldSegment> walk;
  for (std::size_t k = 0; k < planned.segments.size(); ++k) {
    const HeldCache cache = planned.caches ? planned.caches->walk.caches[k] : HeldCache{};
    walk.push_back({planned.candidates[planned.best.states[k]], planned.segments[k], cache});
  }
  return walk;
}

}  // namespace frazil
