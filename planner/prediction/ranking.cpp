#include "planner/prediction/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "planner/prediction/answer_parts.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

bool is_plain(const Plan& plan) {
  const auto* named = std::get_if<NamedSchedule>(&plan.schedule);
  if (named != nullptr && named->in_flight) return false;
  return std::all_of(plan.pipelines.begin(), plan.pipelines.end(), [](const Pipeline& pipeline) {
    return std::all_of(pipeline.stages.begin(), pipeline.stages.end(),
                       [](const Stage& stage) { return stage.memory == MemoryPolicy::kKeep; });
  });
}

}  // namespace

Bytes fullest_device(const Candidate& candidate) {
  Bytes most;
  for (const MemoryPeak& peak : candidate.memory) most = std::max(most, peak.total);
  return most;
}

bool differ_in_schedule_alone(const Candidate& a, const Candidate& b) {
  if (a.makespan != b.makespan || a.infeasible || b.infeasible) return false;
  const auto is_as_full = [](const MemoryPeak& x, const MemoryPeak& y) {
    return x.total == y.total;
  };
  if (!std::equal(a.memory.begin(), a.memory.end(), b.memory.begin(), b.memory.end(), is_as_full)) {
    return false;
  }
  Plan plan = b.plan;
  plan.schedule = a.plan.schedule;
  return plan == a.plan;
}

int count_devices(const Plan& plan) {
  std::size_t devices = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) devices += stage.devices.size();
  }
  return static_cast<int>(devices);
}

std::optional<Infeasible> find_overflow(const std::vector<MemoryPeak>& memory,
                                        const Cluster& cluster) {
  std::optional<Infeasible> worst;
  for (std::size_t d = 0; d < memory.size(); ++d) {
    const Bytes needed = memory[d].total;
    const Bytes available = cluster.devices[d].memory_limit;
    if (needed <= available) continue;
    if (worst && needed - available <= worst->needed - worst->available) continue;
    worst = Infeasible{fmt::format("{} needs {} of memory and has {}", cluster.devices[d].name,
                                   to_text(needed), to_text(available)),
                       DeviceId{d}, needed, available};
  }
  return worst;
}

void refuse_overflow(const std::vector<MemoryPeak>& memory, const Cluster& cluster,
                     const std::string& file) {
  const std::optional<Infeasible> overflow = find_overflow(memory, cluster);
  if (!overflow) return;
  throw InfeasibleError(fmt::format("{}the plan does not fit: {}, at its peak for {}",
                                    file.empty() ? "" : file + ": ", overflow->reason,
                                    list_held(memory[overflow->device.index()])));
}

const Candidate* Ranking::best() const {
  if (candidates.empty() || candidates.front().infeasible) return nullptr;
  return &candidates.front();
}

const Candidate* Ranking::fastest() const {
  if (best() == nullptr) return nullptr;
  // Behind the tied candidates none is faster.
  const auto end = candidates.begin() + std::max(tied, 1);
  return &*std::min_element(candidates.begin(), end, [](const Candidate& a, const Candidate& b) {
    return a.makespan < b.makespan;
  });
}

LowerBound bound_window(const PlanSimulation& window) {
  Duration most{0};
  for (int d = 0; d < window.timeline.devices; ++d) {
    most = std::max(most, busy(window.timeline, DeviceId{d}));
  }
  return {most / window.steps, "busiest-device"};
}

Candidate judge_plan(Plan plan, Setting setting, bool clip) {
  return judge_plan(std::move(plan), setting, StepOptions{.clip = clip, .overlap = std::nullopt});
}

Candidate judge_plan(Plan plan, Setting setting, const StepOptions& options) {
  Candidate candidate;
  candidate.plan = std::move(plan);
  try {
    PlanSimulation simulation = simulate_plan(candidate.plan, setting, options);
    candidate.makespan = simulation.step_time;
    candidate.bounds = simulation.steps > 1
                           ? PlanBounds{bound_window(simulation), bound_window(simulation)}
                           : find_bounds(candidate.plan, setting);
    candidate.memory = std::move(simulation.memory);
    candidate.extrapolated = simulation.extrapolated;
    candidate.infeasible = find_overflow(candidate.memory, setting.cluster());
  } catch (const InfeasibleError& error) {
    candidate.infeasible = Infeasible{error.what(), DeviceId{}, Bytes{}, Bytes{}};
  }
  return candidate;
}

RankingKey ranking_key(const Candidate& candidate) {
  const std::int64_t missing =
      candidate.infeasible ? (candidate.infeasible->needed - candidate.infeasible->available).count
                           : 0;
  // A plan that an interpreter refuses has no missing bytes; it comes last.
  const bool refused = candidate.infeasible && missing == 0;
  return {candidate.infeasible.has_value(),
          refused,
          missing,
          candidate.makespan,
          count_devices(candidate.plan),
          candidate.plan.pipelines.front().stages.size(),
          !is_plain(candidate.plan),
          fullest_device(candidate),
          summarize(candidate.plan)};
}

void rank(std::vector<Candidate>& candidates) {
  std::vector<std::pair<RankingKey, std::size_t>> order;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    order.emplace_back(ranking_key(candidates[i]), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<Candidate> ranked;
  ranked.reserve(candidates.size());
  for (const auto& [key, i] : order) ranked.push_back(std::move(candidates[i]));
  candidates = std::move(ranked);
}

std::string explain_infeasible(const Ranking& ranking, const std::string& by) {
  if (ranking.candidates.empty()) return "no plan is feasible: there is nothing to choose from";
  const Candidate& nearest = ranking.candidates.front();
  return fmt::format("no plan is feasible; the nearest{}, {}: {}",
                     by.empty() ? "" : " by the " + by, summarize(nearest.plan),
                     nearest.infeasible ? nearest.infeasible->reason : "fits");
}

}  // namespace frazil
