#include "planner/search/explain_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "planner/lowering/step_copies.h"
#include "planner/plan/commit_round.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/plan_notation.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/search/rejections.h"
#include "profiles/quantity_text.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

StepShares find_shares(const Plan& plan, Setting setting, const SearchOptions& options) {
  const StepOptions asked{.clip = options.clip, .overlap = options.overlap};
  SimulatedStep step = simulate_step(plan, setting, asked);
  const int steps = count_window(plan, setting, asked);
  if (steps > 1) {
    step.lowered = repeat_steps(step.lowered, steps);
    step.simulation = simulate(step.lowered.graph, setting, step.lowered.actions);
  }
  const auto prices = price_all(step.lowered.graph, setting).of_work;
  const std::vector<DeviceTime> all = split_makespan(
      step.lowered, step.simulation, prices, static_cast<int>(setting.cluster().devices.size()));
  const std::vector<DeviceId> used = list_used_devices(plan);
  DeviceTime sum;
  for (const DeviceId device : used) {
    const DeviceTime pair[] = {sum, all[device.index()]};
    sum = frazil::sum(pair);
  }
  const auto devices = static_cast<std::int64_t>(used.size()) * steps;
  return {sum.compute / devices,
          (sum.fill + sum.drain + sum.wait_upstream + sum.wait_downstream) / devices,
          sum.exposed_communication / devices, sum.update / devices};
}

ExplainedCandidate explain(const Candidate& candidate, Setting setting,
                           const SearchOptions& options) {
  return {summarize(candidate.plan), candidate.makespan, candidate.bounds.makespan,
          find_shares(candidate.plan, setting, options),
          static_cast<int>(list_used_devices(candidate.plan).size())};
}

Bytes missing(const RejectedShapes& shapes) {
  return shapes.rejection.needed - shapes.rejection.available;
}

void add_refusal(std::vector<Refusals>& refusals, const std::string& sentence,
                 std::int64_t candidates) {
  const auto known = std::find_if(refusals.begin(), refusals.end(),
                                  [&](const Refusals& own) { return own.sentence == sentence; });
  if (known == refusals.end()) {
    refusals.push_back({sentence, candidates});
  } else {
    known->candidates += candidates;
  }
}

void count_in(FamilyCount& facts, const RejectedShapes& rejected) {
  const Rejection& rejection = rejected.rejection;
  switch (rejection.why) {
    case Rejection::Why::kBound:
      if (facts.bounded == 0 || rejection.time < facts.nearest_bound) {
        facts.nearest_bound = rejection.time;
        facts.nearest_bound_name = std::string(rejection.bound);
      }
      facts.bounded += rejected.candidates;
      break;
    case Rejection::Why::kSlower:
      facts.slower += rejected.candidates;
      break;
    case Rejection::Why::kMemory:
      facts.too_large += rejected.candidates;
      if (!facts.nearest_fit || missing(rejected) < missing(*facts.nearest_fit)) {
        facts.nearest_fit = rejected;
      }
      break;
    case Rejection::Why::kRefused:
      facts.refused += rejected.candidates;
      add_refusal(facts.refusals, rejection.sentence, rejected.candidates);
      break;
  }
}

std::vector<FamilyCount> count_families(const std::vector<RejectedShapes>& all) {
  FamilyCount any;
  any.schedule = "any schedule";
  std::map<ScheduleKind, FamilyCount> by_kind;
  for (const RejectedShapes& rejected : all) {
    FamilyCount& family = rejected.schedule ? by_kind[rejected.schedule->kind] : any;
    count_in(family, rejected);
  }
  std::vector<FamilyCount> families;
  if (any.bounded + any.too_large + any.refused > 0) families.push_back(any);
  for (const ScheduleFacts& facts : all_schedules()) {
    const auto counted = by_kind.find(facts.kind);
    if (counted == by_kind.end()) continue;
    counted->second.schedule = std::string(schedule_name(facts.kind));
    families.push_back(counted->second);
  }
  return families;
}

// Rows of one shape and schedule are shown as one, whatever their sizes and depths.
auto row_key(const RejectedShapes& shapes) {
  return std::tuple(shapes.group_devices, shapes.groups, shapes.longer,
                    shapes.schedule ? std::optional(shapes.schedule->kind) : std::nullopt);
}

// Takes together all rejections for memory of one row. The rejection that misses least stands for
// the others, with the candidates of all. Returns the rows, those that miss least first; of equal
// ones the smaller shape comes first.
std::vector<RejectedShapes> join_rows(const std::vector<RejectedShapes>& rejected) {
  std::map<decltype(row_key(rejected.front())), RejectedShapes> least;
  for (const RejectedShapes& shapes : rejected) {
    if (shapes.rejection.why != Rejection::Why::kMemory) continue;
    const auto [own, is_first] = least.try_emplace(row_key(shapes), shapes);
    if (is_first) continue;
    const std::int64_t candidates = own->second.candidates + shapes.candidates;
    if (missing(shapes) < missing(own->second)) own->second = shapes;
    own->second.candidates = candidates;
  }
  std::vector<RejectedShapes> nearest;
  for (const auto& [key, shapes] : least) nearest.push_back(shapes);
  std::stable_sort(
      nearest.begin(), nearest.end(),
      [](const RejectedShapes& a, const RejectedShapes& b) { return missing(a) < missing(b); });
  return nearest;
}

// Returns what a plan that was simulated misses; none if it fits or is refused.
std::optional<RejectedShapes> find_miss(const Candidate& candidate) {
  const std::optional<Shape> shape = find_shape(candidate.plan);
  if (!shape || !candidate.infeasible) return std::nullopt;
  const Infeasible& infeasible = *candidate.infeasible;
  if (infeasible.needed <= infeasible.available) return std::nullopt;
  Rejection rejection;
  rejection.why = Rejection::Why::kMemory;
  rejection.device = infeasible.device;
  rejection.needed = infeasible.needed;
  rejection.available = infeasible.available;
  Rejections one;
  one.add(*shape, true, 1, rejection);
  return one.list(Duration{0}).front();
}

// Makes `named` stand for its row, which comes first. The plan is a candidate of that row already,
// or else, if the search never told its schedule from others, of the row of any schedule.
void put_first(std::vector<RejectedShapes>& rows, RejectedShapes named) {
  const auto find = [&](const RejectedShapes& wanted) {
    return std::find_if(rows.begin(), rows.end(),
                        [&](const RejectedShapes& row) { return row_key(row) == row_key(wanted); });
  };
  if (const auto own = find(named); own != rows.end()) {
    named.candidates = own->candidates;
    rows.erase(own);
  } else {
    RejectedShapes any = named;
    any.schedule = std::nullopt;
    const auto of_any = find(any);
    if (of_any != rows.end() && --of_any->candidates == 0) rows.erase(of_any);
  }
  rows.insert(rows.begin(), std::move(named));
}

// Lists at most `most` rows of what came nearest, that of the named plan first. With a named plan
// the candidates of the ranking count in their rows, too.
void list_nearest(const Ranking& ranking, const Candidate* named, std::size_t most,
                  PlanExplanation& explanation) {
  std::vector<RejectedShapes> too_large = ranking.rejected;
  const std::optional<RejectedShapes> first = named ? find_miss(*named) : std::nullopt;
  if (first) {
    for (const Candidate& candidate : ranking.candidates) {
      if (const auto own = find_miss(candidate)) too_large.push_back(*own);
    }
  }
  std::vector<RejectedShapes>& rows = explanation.nearest;
  rows = join_rows(too_large);
  if (first) put_first(rows, *first);
  explanation.names_nearest = first.has_value();
  if (rows.size() > most) rows.resize(most);
}

// Returns the number of devices.
int takes(const RejectedShapes& shapes) {
  return shapes.group_devices * shapes.groups + shapes.longer;
}

// Returns the fastest of all plans that would run on more devices than `used`, by its bound or
// simulated; none if there is none.
std::optional<Rejection> fastest_of_larger(const Ranking& ranking, int used) {
  std::optional<Rejection> least;
  for (const RejectedShapes& rejected : ranking.rejected) {
    const Rejection& rejection = rejected.rejection;
    const bool runs =
        rejection.why == Rejection::Why::kBound || rejection.why == Rejection::Why::kSlower;
    if (takes(rejected) > used && runs && (!least || rejection.time < least->time)) {
      least = rejection;
    }
  }
  for (std::size_t c = 1; c < ranking.candidates.size(); ++c) {
    const Candidate& other = ranking.candidates[c];
    if (other.infeasible || static_cast<int>(list_used_devices(other.plan).size()) <= used)
      continue;
    if (least && other.makespan >= least->time) continue;
    least.emplace();
    least->why = Rejection::Why::kSlower;
    least->time = other.makespan;
  }
  return least;
}

// Says in a sentence what became of the plans that would use more devices.
std::string explain_idleness(const Ranking& ranking, int used) {
  const std::optional<Rejection> least = fastest_of_larger(ranking, used);
  const bool too_large = std::any_of(
      ranking.rejected.begin(), ranking.rejected.end(), [&](const RejectedShapes& rejected) {
        return takes(rejected) > used && rejected.rejection.why == Rejection::Why::kMemory;
      });
  if (ranking.left) {
    return fmt::format("some plans were not looked at; they take at least {}",
                       to_text(ranking.left->at_least));
  }
  if (!least) {
    return too_large ? "plans on more devices do not fit into memory"
                     : "there is no plan on more devices: too few layers and micro-batches";
  }
  const bool proven = least->why == Rejection::Why::kBound;
  return fmt::format("plans on more devices are no faster: the best takes {}{}{}",
                     proven ? "at least " : "", to_text(least->time),
                     proven ? fmt::format(" ({})", least->bound) : "");
}

IdleDevices find_idle(const Ranking& ranking, const Cluster& cluster) {
  IdleDevices idle;
  const std::vector<DeviceId> used = list_used_devices(ranking.candidates.front().plan);
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    if (!std::binary_search(used.begin(), used.end(), DeviceId{d})) idle.devices.emplace_back(d);
  }
  if (!idle.devices.empty()) {
    idle.reason = explain_idleness(ranking, static_cast<int>(used.size()));
  }
  return idle;
}

}  // namespace

std::string shape_notation(const RejectedShapes& shapes) {
  const int longest = shapes.group_devices + (shapes.longer > 0 ? 1 : 0);
  const int chunks = shapes.schedule ? shapes.schedule->chunks : 1;
  const int ways = shapes.schedule ? directions(facts_of(shapes.schedule->kind).placement) : 1;
  std::string text = shape_notation(static_cast<std::size_t>(longest * chunks),
                                    static_cast<std::size_t>(shapes.groups * ways));
  const int shorter = (shapes.groups - shapes.longer) * ways;
  if (shapes.longer > 0) text += fmt::format(" ({} of {})", shorter, shapes.group_devices * chunks);
  return text;
}

std::string describe_shapes(const RejectedShapes& shapes) {
  std::string text =
      fmt::format("{}, micro-batch {}", shape_notation(shapes), shapes.micro_batch_size);
  if (!shapes.schedule) return text;
  text += ", " + variant_notation(*shapes.schedule, shapes.recompute);
  return shapes.cached ? text + " cached" : text;
}

PlanExplanation explain_plan(const Ranking& ranking, Setting setting, const SearchOptions& options,
                             const Candidate* named) {
  PlanExplanation explanation;
  for (const Candidate& candidate : ranking.candidates) {
    if (candidate.infeasible || explanation.best.size() == 2) break;
    if (!explanation.best.empty() &&
        differ_in_schedule_alone(candidate, ranking.candidates.front())) {
      continue;
    }
    explanation.best.push_back(explain(candidate, setting, options));
  }
  explanation.families = count_families(ranking.rejected);
  if (explanation.best.empty()) {
    list_nearest(ranking, named, static_cast<std::size_t>(options.keep), explanation);
  } else {
    explanation.idle = find_idle(ranking, setting.cluster());
  }
  explanation.candidates = static_cast<std::int64_t>(ranking.candidates.size()) +
                           (ranking.left ? ranking.left->candidates : 0);
  for (const RejectedShapes& rejected : ranking.rejected) {
    explanation.candidates += rejected.candidates;
  }
  explanation.simulated = ranking.simulated;
  return explanation;
}

}  // namespace frazil
