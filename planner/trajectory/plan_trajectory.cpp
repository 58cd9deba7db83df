#include "planner/trajectory/plan_trajectory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "planner/trajectory/far_sums.h"
#include "planner/trajectory/plan_caches.h"
#include "planner/trajectory/priced_masks.h"
#include "planner/trajectory/step_times.h"
#include "planner/trajectory/trajectory_candidates.h"
#include "planner/trajectory/work_function.h"
#include "profiles/error.h"

namespace frazil {

namespace {

constexpr Step kNoSteps = std::numeric_limits<Step>::max();
constexpr int kYearsFarAway =
    std::chrono::duration_cast<std::chrono::duration<int, std::ratio<31'556'952>>>(kFarAway)
        .count();

int count_hosts(const Cluster& cluster) {
  std::set<HostId> hosts;
  for (const Device& device : cluster.devices) hosts.insert(device.host);
  return static_cast<int>(hosts.size());
}

// Up to this many masks each have the whole cut effort; more masks share that total.
constexpr std::int64_t kMasksWithAllEffort = 4;

std::vector<Plan> find_candidates(const PricedMasks& table, const TrajectoryOptions& options) {
  std::map<const ModelProfile*, PlanSearch> searches;  // by the costs that they search with
  const std::int64_t effort = options.search.cut_effort;
  const auto masks = static_cast<std::int64_t>(table.masks().size());
  CandidateQuestion question{options.search, options.plans_per_mask, options.store.has_value()};
  question.search.cut_effort = std::min(effort, effort * kMasksWithAllEffort / masks);
  std::vector<Plan> candidates;
  for (std::size_t m = 0; m < table.masks().size(); ++m) {
    const Setting setting = table.settings()[m];
    question.search.mask = table.masks()[m];
    PlanSearch& plans = searches.try_emplace(&setting.profile(), setting).first->second;
    add_candidates(plans, setting, question, candidates);
  }
  if (!options.before) return candidates;
  const Plan before = as_candidate(options.before->plan);
  if (std::find(candidates.begin(), candidates.end(), before) == candidates.end()) {
    candidates.push_back(before);
  }
  return candidates;
}

std::optional<std::size_t> find_before(const std::vector<Plan>& candidates,
                                       const TrajectoryOptions& options) {
  if (!options.before) return std::nullopt;
  const auto place =
      std::find(candidates.begin(), candidates.end(), as_candidate(options.before->plan));
  return static_cast<std::size_t>(place - candidates.begin());
}

// Returns the mask of all blocks that train under some mask.
FreezeMask join_masks(const std::vector<FreezeMask>& masks) {
  FreezeMask all = masks.front();
  for (const FreezeMask& mask : masks) {
    for (int block = 0; block < all.blocks(); ++block) {
      if (mask.is_active(BlockId{block})) all.set_active(BlockId{block}, true);
    }
  }
  return all;
}

}  // namespace

class TrajectoryPlanner::Walks {
 public:
  Walks(Setting setting, const std::vector<ForecastSegment>& segments, TrajectoryOptions options)
      : options_(std::move(options)),
        profile_(setting.profile()),
        hosts_(count_hosts(setting.cluster())),
        segments_(segments),
        table_(setting, segments),
        candidates_(find_candidates(table_, options_)),
        steps_(candidates_, table_.masks(), table_.settings(), options_.search),
        transitions_(candidates_, setting) {
    for (const FreezeMask& mask : table_.masks()) {
      prices_.push_back(transitions_.price(find_activity(profile_, mask)));
    }
    const FreezeMask& trained = options_.before ? options_.before->trained : segments[0].mask;
    price_before_ = transitions_.price(find_activity(profile_, trained));
  }

  // Costs begin as lower bounds. A cheapest walk whose own costs are exact is the cheapest of all
  // walks.
  PlannedTrajectory plan(const TransitionOverhead& overhead, std::optional<std::size_t> held) {
    options_.overhead = overhead;
    start_ = held ? held : find_before(candidates_, options_);
    planned_ = {};
    planned_.segments = segments_;
    TrajectoryCosts costs = list_costs();
    const auto refine = [&](const auto& find) {
      std::optional<Trajectory> walk = find(costs);
      while (walk && sharpen(costs, walk->states)) walk = find(costs);
      return walk;
    };
    // The cheap questions come first: costs that they make exact need not be asked for again.
    if (options_.compares) {
      planned_.greedy = refine(follow_greedily);
      planned_.held = refine(hold_one);
    }
    const auto best = refine(find_trajectory);
    // Each mask has a plan that fits, and any plan can follow any other.
    if (!best) {
      throw InfeasibleError(
          fmt::format("the {} steps of the forecast take longer than {} years, "
                      "the longest time that can be added up",
                      count_steps(), kYearsFarAway));
    }
    planned_.best = *best;
    if (options_.store) plan_caches(costs);
    list_transitions();
    if (options_.compares) planned_.online = run_online();
    for (std::size_t k = 0; k < planned_.segments.size(); ++k) {
      planned_.step_times.emplace_back();
      for (std::size_t s = 0; s < candidates_.size(); ++s) {
        planned_.step_times[k].push_back(steps_.known(table_.of_segment(k), s));
      }
    }
    planned_.candidates = candidates_;
    return std::exchange(planned_, {});
  }

 private:
  // The state that is moved at the beginning of a segment is what the previous mask has left.
  TransitionCost transition(std::size_t segment, std::size_t from, std::size_t to) const {
    return transitions_.predict(from, to, prices_before(segment), options_.overhead);
  }

  const Transitions::StatePrices& prices_before(std::size_t segment) const {
    return segment == 0 ? price_before_ : prices_[table_.of_segment(segment - 1)];
  }

  Duration step_time(std::size_t segment, std::size_t candidate) {
    return steps_.exact(table_.of_segment(segment), candidate);
  }

  TrajectoryCosts list_costs() const {
    TrajectoryCosts costs;
    costs.start = start_;
    const std::size_t states = candidates_.size();
    for (std::size_t k = 0; k < planned_.segments.size(); ++k) {
      costs.hold.emplace_back();
      costs.change.emplace_back(states, std::vector<Duration>(states));
      for (std::size_t s = 0; s < states; ++s) {
        costs.hold[k].push_back(
            times(steps_.known(table_.of_segment(k), s), planned_.segments[k].steps));
        for (std::size_t to = 0; (k > 0 || s == start_) && to < states; ++to) {
          if (to == s) continue;
          costs.change[k][s][to] =
              transitions_.at_least(s, to, prices_before(k), options_.overhead);
        }
      }
    }
    return costs;
  }

  // Makes the costs of a walk exact, up to the first that cannot be; returns whether some were not.
  bool sharpen(TrajectoryCosts& costs, const std::vector<std::size_t>& states) {
    bool changed = false;
    const auto set = [&](Duration& cost, Duration exact) {
      changed = changed || cost != exact;
      cost = exact;
      return exact < kFarAway;
    };
    for (std::size_t k = 0; k < states.size(); ++k) {
      const std::size_t s = states[k];
      if (!set(costs.hold[k][s], times(step_time(k, s), planned_.segments[k].steps))) break;
      const std::size_t from = k > 0 ? states[k - 1] : start_.value_or(s);
      if (from != s) set(costs.change[k][from][s], transition(k, from, s).total);
    }
    return changed;
  }

  Step count_steps() const {
    return planned_.segments.back().step + planned_.segments.back().steps;
  }

  void plan_caches(TrajectoryCosts& costs) {
    masked_.clear();
    for (std::size_t k = 0; k < planned_.segments.size(); ++k) {
      const std::size_t mask = table_.of_segment(k);
      const Activity activity = find_activity(profile_, table_.masks()[mask]);
      masked_.push_back(
          {planned_.segments[k].steps, mask, count_frozen_prefix(profile_, activity)});
    }
    const PlanChanges changes{.known = [&](std::size_t k, std::size_t from,
                                           std::size_t to) { return costs.change[k][from][to]; },
                              .exact =
                                  [&](std::size_t k, std::size_t from, std::size_t to) {
                                    return costs.change[k][from][to] =
                                               transition(k, from, to).total;
                                  }};
    caches_.emplace(profile_, candidates_, masked_, *options_.store, steps_);
    planned_.caches = caches_->plan(changes, planned_.best, start_);
    ENSURE(planned_.caches.has_value(), "what fits without a cache is one of the walks");
    planned_.uncached = planned_.best;
    planned_.best = {planned_.caches->walk.total, planned_.caches->walk.plans};
    planned_.caches->hosts = hosts_;
  }

  // Returns the time of a step that reads what is cached in the segment, if the plan can read that.
  Duration held_step_time(std::size_t segment, std::size_t candidate) {
    if (!caches_) return step_time(segment, candidate);
    return caches_->step_time(segment, candidate, planned_.caches->walk.caches[segment].features);
  }

  void list_transitions() {
    const std::vector<std::size_t>& states = planned_.best.states;
    for (std::size_t k = 1; k < states.size(); ++k) {
      if (states[k] == states[k - 1]) continue;
      PlannedTransition change{.segment = k,
                               .from = states[k - 1],
                               .to = states[k],
                               .cost = transition(k, states[k - 1], states[k])};
      change.forced = held_step_time(k, change.from) >= kFarAway;
      if (!change.forced) change.break_even = find_break_even(change);
      planned_.transitions.push_back(change);
    }
  }

  // Steps of a segment with one time each under the old plan and under the new plan.
  struct Stretch {
    Step steps = 0;
    Duration old_step{0};
    Duration new_step{0};
  };

  // Splits a segment into the steps that fill a cache and the steps after them.
  std::vector<Stretch> list_stretches(std::size_t segment, const PlannedTransition& change) {
    std::vector<Stretch> stretches;
    Step left = planned_.segments[segment].steps;
    if (caches_) {
      const HeldCache& cache = planned_.caches->walk.caches[segment];
      const Step filling = std::min(left, cache.left);
      if (filling > 0) {
        stretches.push_back({filling, caches_->filling_step_time(segment, change.from, cache),
                             caches_->filling_step_time(segment, change.to, cache)});
      }
      left -= filling;
    }
    if (left > 0) {
      stretches.push_back(
          {left, held_step_time(segment, change.from), held_step_time(segment, change.to)});
    }
    return stretches;
  }

  std::optional<Step> find_break_even(const PlannedTransition& change) {
    Duration missing = change.cost.total;
    Step steps = 0;
    for (std::size_t k = change.segment; k < planned_.segments.size(); ++k) {
      for (const Stretch& stretch : list_stretches(k, change)) {
        if (stretch.old_step >= kFarAway || stretch.new_step >= kFarAway) return std::nullopt;
        const Duration saved = stretch.old_step - stretch.new_step;
        if (missing <= Duration{0}) return steps;
        if (times(stretch.new_step, stretch.steps) >= kFarAway) return std::nullopt;
        const Step needed = saved > kNoTime ? (missing + saved - Duration{1}) / saved : kNoSteps;
        if (needed <= stretch.steps) return steps + needed;
        missing -= saved * stretch.steps;
        steps += stretch.steps;
      }
    }
    return std::nullopt;
  }

  std::optional<OnlineRun> run_online() {
    const std::vector<std::size_t> fitting = list_fitting();
    if (fitting.empty()) return std::nullopt;
    WorkFunction rule(make_metric(list_prices(fitting)), find_first(fitting));
    for (std::size_t k = 0; k < planned_.segments.size(); ++k) {
      const Step steps = planned_.segments[k].steps;
      const auto serve = [&](Step together, Step count) {
        if (together > 0 && count > 0) rule.serve(list_tasks(k, fitting, together), count);
      };
      serve(options_.decide_every, steps / options_.decide_every);
      serve(steps % options_.decide_every, 1);
    }
    return OnlineRun{rule.paid(),     rule.hindsight(), rule.factor(),
                     rule.additive(), rule.changes(),   fitting.size()};
  }

  // Returns the time of `together` steps of a segment under each fitting candidate.
  std::vector<Duration> list_tasks(std::size_t segment, const std::vector<std::size_t>& fitting,
                                   Step together) {
    std::vector<Duration> task;
    task.reserve(fitting.size());
    for (const std::size_t candidate : fitting) {
      task.push_back(times(step_time(segment, candidate), together));
    }
    return task;
  }

  // Lists the candidates that can be held throughout.
  std::vector<std::size_t> list_fitting() {
    std::vector<std::size_t> fitting;
    for (std::size_t s = 0; s < candidates_.size(); ++s) {
      Duration held{0};
      for (std::size_t k = 0; held < kFarAway && k < planned_.segments.size(); ++k) {
        held = add(held, times(step_time(k, s), planned_.segments[k].steps));
      }
      if (held < kFarAway) fitting.push_back(s);
    }
    return fitting;
  }

  // Returns prices that do not vary over time: those of all state that is ever trained.
  Prices list_prices(const std::vector<std::size_t>& fitting) const {
    const auto state = transitions_.price(find_activity(profile_, join_masks(table_.masks())));
    Prices prices(fitting.size(), std::vector<Duration>(fitting.size()));
    for (std::size_t a = 0; a < fitting.size(); ++a) {
      for (std::size_t b = 0; b < fitting.size(); ++b) {
        prices[a][b] = transitions_.predict(fitting[a], fitting[b], state, options_.overhead).total;
      }
    }
    return prices;
  }

  std::size_t find_first(const std::vector<std::size_t>& fitting) {
    const auto first = std::min_element(
        fitting.begin(), fitting.end(),
        [&](std::size_t a, std::size_t b) { return step_time(0, a) < step_time(0, b); });
    return static_cast<std::size_t>(first - fitting.begin());
  }

  TrajectoryOptions options_;
  const ModelProfile& profile_;
  int hosts_;
  std::vector<ForecastSegment> segments_;
  PricedMasks table_;
  std::vector<Plan> candidates_;
  StepTimes steps_;
  Transitions transitions_;
  std::vector<Transitions::StatePrices> prices_;  // by mask
  Transitions::StatePrices price_before_;         // before the first segment
  std::vector<MaskedSegment> masked_;             // empty without a store
  std::optional<CachePlanner> caches_;            // none without a store
  std::optional<std::size_t> start_;              // of the trajectory that is being planned
  PlannedTrajectory planned_;                     // likewise
};

TrajectoryPlanner::TrajectoryPlanner(Setting setting, const std::vector<ForecastSegment>& segments,
                                     TrajectoryOptions options) {
  ENSURE(!segments.empty() && options.plans_per_mask >= 1 && options.decide_every >= 1,
         "some segment, some candidate, some step between decisions");
  walks_ = std::make_unique<Walks>(setting, segments, std::move(options));
}

TrajectoryPlanner::~TrajectoryPlanner() = default;

PlannedTrajectory TrajectoryPlanner::plan(const TransitionOverhead& overhead,
                                          std::optional<std::size_t> held) {
  return walks_->plan(overhead, held);
}

PlannedTrajectory plan_trajectory(Setting setting, const std::vector<ForecastSegment>& segments,
                                  const TrajectoryOptions& options) {
  return TrajectoryPlanner(setting, segments, options).plan(options.overhead);
}

}  // namespace frazil
