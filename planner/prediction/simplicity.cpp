#include "planner/prediction/simplicity.h"

#include <algorithm>

#include "planner/plan/commit_round.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/plan_notation.h"

namespace frazil {
namespace {

int count_complications(const NamedSchedule& schedule) {
  const ScheduleFacts& facts = facts_of(schedule.kind);
  return int{facts.splits_backward} + int{facts.needs_costs} + int{schedule.in_flight.has_value()};
}

}  // namespace

int count_used_devices(const Plan& plan) {
  return static_cast<int>(list_used_devices(plan).size());
}

int count_complications(const Plan& plan) {
  const ParallelShape shape = parallel_shape(plan);
  int count = int{recomputes(plan)} + int{shape.pipeline_devices.size() > 1};
  if (shape.pipeline_devices.front() > 1) {
    count += 1 + int{shape.both_ways} + int{shape.shares_stages};
    // On one device a schedule is no more than the order of a loop.
    if (const auto* named = std::get_if<NamedSchedule>(&plan.schedule)) {
      count += count_complications(*named);
    } else {
      ++count;
    }
  }
  return count + int{shape.chunks > 1} + int{plan.steps_ahead > 0};
}

Simplicity simplicity_of(const Plan& plan) {
  return {count_complications(plan), count_used_devices(plan),
          plan.pipelines.front().stages.size()};
}

Duration within_noise(Duration fastest, std::int64_t noise_ppm) {
  __extension__ using Wide = __int128;
  const Wide more = Wide{fastest.count()} * noise_ppm / 1'000'000;
  return fastest + Duration{static_cast<std::int64_t>(more)};
}

void prefer_simplest(Ranking& ranking, std::int64_t noise_ppm) {
  if (noise_ppm == 0 || ranking.best() == nullptr) return;
  std::vector<Candidate>& all = ranking.candidates;
  const Duration most = within_noise(ranking.best()->makespan, noise_ppm);
  const auto end = std::find_if(all.begin(), all.end(), [&](const Candidate& candidate) {
    return candidate.infeasible || candidate.makespan > most;
  });
  std::stable_sort(all.begin(), end, [](const Candidate& a, const Candidate& b) {
    return simplicity_of(a.plan) < simplicity_of(b.plan);
  });
  ranking.tied = static_cast<int>(end - all.begin());
}

}  // namespace frazil
