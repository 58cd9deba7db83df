#include "planner/trajectory/plan_trajectory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/simulate_plan.h"
#include "planner/trajectory/work_function.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// What depends on a mask alone, looked up by its text: forecasts come back to the same masks.
struct MaskTable {
  std::vector<FreezeMask> masks;
  std::vector<std::size_t> of_segment;
};

MaskTable list_masks(const std::vector<ForecastSegment>& segments) {
  MaskTable table;
  std::map<std::string, std::size_t> known;
  for (const ForecastSegment& segment : segments) {
    const auto [place, added] = known.try_emplace(segment.mask.text(), table.masks.size());
    if (added) table.masks.push_back(segment.mask);
    table.of_segment.push_back(place->second);
  }
  return table;
}

std::vector<Plan> find_candidates(const ModelProfile& profile, const Cluster& cluster,
                                  const MaskTable& table, const TrajectoryOptions& options) {
  std::vector<Plan> candidates;
  for (const FreezeMask& mask : table.masks) {
    SearchOptions search = options.search;
    search.mask = mask;
    search.keep = options.plans_per_mask;
    const Ranking ranking = search_plans(profile, cluster, search);
    if (ranking.best() == nullptr) {
      throw InfeasibleError("no plan fits under the mask " + mask.text());
    }
    int taken = 0;
    for (const Candidate& candidate : ranking.candidates) {
      if (candidate.infeasible || taken == options.plans_per_mask) break;
      Plan plan = candidate.plan;
      plan.mask = FreezeMask::all_active(mask.blocks());
      if (std::find(candidates.begin(), candidates.end(), plan) == candidates.end()) {
        candidates.push_back(std::move(plan));
      }
      ++taken;
    }
  }
  return candidates;
}

Duration time_step(Plan plan, const FreezeMask& mask, const ModelProfile& profile,
                   const Cluster& cluster, bool clip) {
  plan.mask = mask;
  try {
    const PlanSimulation step = simulate_plan(plan, profile, cluster, {.clip = clip});
    return find_overflow(step.memory, cluster) ? kNever : step.makespan;
  } catch (const InfeasibleError&) {
    return kNever;
  }
}

std::vector<std::vector<Duration>> time_steps(const std::vector<Plan>& candidates,
                                              const MaskTable& table, const ModelProfile& profile,
                                              const Cluster& cluster, bool clip) {
  std::vector<std::vector<Duration>> by_mask;
  for (const FreezeMask& mask : table.masks) {
    by_mask.emplace_back();
    for (const Plan& plan : candidates) {
      by_mask.back().push_back(time_step(plan, mask, profile, cluster, clip));
    }
  }
  std::vector<std::vector<Duration>> by_segment;
  for (const std::size_t mask : table.of_segment) by_segment.push_back(by_mask[mask]);
  return by_segment;
}

Duration times(Duration step, Step count) { return step >= kNever ? kNever : step * count; }

class Planner {
 public:
  Planner(const ModelProfile& profile, const Cluster& cluster,
          const std::vector<ForecastSegment>& segments, const TrajectoryOptions& options)
      : options_(options), table_(list_masks(segments)) {
    planned_.segments = segments;
    planned_.candidates = find_candidates(profile, cluster, table_, options);
    planned_.step_times =
        time_steps(planned_.candidates, table_, profile, cluster, options.search.clip);
    std::vector<const Plan*> plans;
    for (const Plan& plan : planned_.candidates) plans.push_back(&plan);
    const Transitions transitions(plans, profile, cluster);
    for (const FreezeMask& mask : table_.masks) {
      by_mask_.push_back(transitions.predict_all(find_activity(profile, mask), options.overhead));
    }
  }

  PlannedTrajectory plan() {
    const TrajectoryCosts costs = list_costs();
    const auto best = find_trajectory(costs);
    ENSURE(best.has_value(), "each mask has a plan that fits, and any plan can follow any other");
    planned_.best = *best;
    planned_.held = hold_one(costs);
    planned_.greedy = follow_greedily(costs);
    list_switches();
    planned_.online = run_online();
    return std::move(planned_);
  }

 private:
  // State at the begin of a segment is what the mask before has left.
  const TransitionCost& transition(std::size_t segment, std::size_t from, std::size_t to) const {
    return by_mask_[table_.of_segment[segment - 1]][from][to];
  }

  TrajectoryCosts list_costs() const {
    TrajectoryCosts costs;
    const std::size_t states = planned_.candidates.size();
    for (std::size_t k = 0; k < planned_.segments.size(); ++k) {
      costs.hold.emplace_back();
      costs.change.emplace_back(states, std::vector<Duration>(states));
      for (std::size_t s = 0; s < states; ++s) {
        costs.hold[k].push_back(times(planned_.step_times[k][s], planned_.segments[k].steps));
        for (std::size_t to = 0; k > 0 && to < states; ++to) {
          if (to != s) costs.change[k][s][to] = transition(k, s, to).total;
        }
      }
    }
    return costs;
  }

  void list_switches() {
    const std::vector<std::size_t>& states = planned_.best.states;
    for (std::size_t k = 1; k < states.size(); ++k) {
      if (states[k] == states[k - 1]) continue;
      PlannedSwitch change{.segment = k,
                           .from = states[k - 1],
                           .to = states[k],
                           .cost = transition(k, states[k - 1], states[k])};
      change.forced = planned_.step_times[k][change.from] >= kNever;
      if (!change.forced) change.break_even = find_break_even(change);
      planned_.switches.push_back(change);
    }
  }

  std::optional<Step> find_break_even(const PlannedSwitch& change) const {
    Duration missing = change.cost.total;
    Step steps = 0;
    for (std::size_t k = change.segment; k < planned_.segments.size(); ++k) {
      const Duration old_step = planned_.step_times[k][change.from];
      const Duration new_step = planned_.step_times[k][change.to];
      if (old_step >= kNever || new_step >= kNever) return std::nullopt;
      const Duration saved = old_step - new_step;
      const Step length = planned_.segments[k].steps;
      if (missing <= saved * length) {
        if (missing <= Duration{0}) return steps;
        return steps + (missing + saved - Duration{1}) / saved;
      }
      missing -= saved * length;
      steps += length;
    }
    return std::nullopt;
  }

  std::optional<OnlineRun> run_online() const {
    const std::vector<std::size_t> fitting = list_fitting();
    if (fitting.empty()) return std::nullopt;
    WorkFunction rule(make_metric(list_prices(fitting)), find_first(fitting));
    for (std::size_t k = 0; k < planned_.segments.size(); ++k) {
      for (Step left = planned_.segments[k].steps; left > 0; left -= options_.decide_every) {
        std::vector<Duration> task;
        for (const std::size_t candidate : fitting) {
          task.push_back(planned_.step_times[k][candidate] * std::min(left, options_.decide_every));
        }
        rule.serve(task);
      }
    }
    return OnlineRun{rule.paid(),     rule.hindsight(), rule.factor(),
                     rule.additive(), rule.changes(),   fitting.size()};
  }

  std::vector<std::size_t> list_fitting() const {
    std::vector<std::size_t> fitting;
    for (std::size_t s = 0; s < planned_.candidates.size(); ++s) {
      const bool fits =
          std::all_of(planned_.step_times.begin(), planned_.step_times.end(),
                      [&](const std::vector<Duration>& times) { return times[s] < kNever; });
      if (fits) fitting.push_back(s);
    }
    return fitting;
  }

  // One price for all times, so the largest: state shrinks as layers freeze.
  Prices list_prices(const std::vector<std::size_t>& fitting) const {
    Prices prices(fitting.size(), std::vector<Duration>(fitting.size()));
    for (std::size_t a = 0; a < fitting.size(); ++a) {
      for (std::size_t b = 0; b < fitting.size(); ++b) {
        for (const auto& costs : by_mask_) {
          prices[a][b] = std::max(prices[a][b], costs[fitting[a]][fitting[b]].total);
        }
      }
    }
    return prices;
  }

  std::size_t find_first(const std::vector<std::size_t>& fitting) const {
    const auto first =
        std::min_element(fitting.begin(), fitting.end(), [&](std::size_t a, std::size_t b) {
          return planned_.step_times[0][a] < planned_.step_times[0][b];
        });
    return static_cast<std::size_t>(first - fitting.begin());
  }

  const TrajectoryOptions& options_;
  MaskTable table_;
  std::vector<std::vector<std::vector<TransitionCost>>> by_mask_;  // [mask][from][to]
  PlannedTrajectory planned_;
};

}  // namespace

std::vector<ForecastSegment> find_segments(const FreezeTrace& trace, const std::string& file) {
  if (trace.steps < 1) {
    throw InputError(file, 1, "\"steps\": " + std::to_string(trace.steps), "at least one step");
  }
  std::vector<ForecastSegment> segments{
      {0, 0, FreezeMask::all_active(static_cast<int>(trace.blocks.size()))}};
  for (const FreezeEvent& event : trace.events) {
    const auto* const mask = std::get_if<MaskEvent>(&event.what);
    if (mask == nullptr || event.step >= trace.steps || mask->mask == segments.back().mask)
      continue;
    if (event.step == segments.back().step) {
      segments.back().mask = mask->mask;
    } else {
      segments.push_back({event.step, 0, mask->mask});
    }
  }
  // A mask that was taken back at once may leave equal neighbours.
  const auto same = [](const ForecastSegment& a, const ForecastSegment& b) {
    return a.mask == b.mask;
  };
  segments.erase(std::unique(segments.begin(), segments.end(), same), segments.end());
  for (std::size_t k = 0; k < segments.size(); ++k) {
    const Step end = k + 1 < segments.size() ? segments[k + 1].step : trace.steps;
    segments[k].steps = end - segments[k].step;
  }
  return segments;
}

PlannedTrajectory plan_trajectory(const ModelProfile& profile, const Cluster& cluster,
                                  const std::vector<ForecastSegment>& segments,
                                  const TrajectoryOptions& options) {
  ENSURE(!segments.empty() && options.plans_per_mask >= 1 && options.decide_every >= 1,
         "some segment, some candidate, some step between decisions");
  return Planner(profile, cluster, segments, options).plan();
}

}  // namespace frazil
