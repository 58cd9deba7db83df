// The JSON of planner/reproduce/pipe_bd/pipe_bd_text.h.
#include "planner/reproduce/pipe_bd/pipe_bd_text.h"

#include <nlohmann/json.hpp>

#include "planner/reproduce/pipe_bd/pipe_bd_verdicts.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

Json open_load_json(const OpenLoad& open) {
  Json json = {{"simulated_ns", open.simulated.count()},
               {"slope_per_ms", open.slope_per_ms},
               {"without", open.without},
               {"needed_ns", nullptr}};
  if (open.needed) json["needed_ns"] = open.needed->count();
  return json;
}

Json row_json(const SpeedupResult& result, std::size_t method, SpeedupVerdict verdict) {
  const double published = result.published.thousandths[method] / 1000.0;
  const double simulated = find_speedup(result, method);
  Json row = {{"task", result.published.task},
              {"dataset", result.published.dataset},
              {"method", method_name(kBlockwiseMethods[method])},
              {"published", published},
              {"simulated", simulated},
              {"error", simulated / published - 1},
              {"step_ns", result.times[method].plain.count()}};
  if (const auto spread = find_spread(result, method)) {
    row["drawn"] = {{"median", spread->median}, {"p10", spread->p10}, {"p90", spread->p90}};
  }
  if (result.bar) row["bar"] = *result.bar;
  if (kBlockwiseMethods[method] == BlockwiseMethod::kLs && result.open_load) {
    row["load_of_a_batch"] = open_load_json(*result.open_load);
  }
  row["verdict"] = verdict_words(verdict, result);
  return row;
}

Json speedups_json(const PipeBdResults& results) {
  Json rows = Json::array();
  for (const SpeedupResult& result : results.speedups) {
    const std::vector<SpeedupVerdict> verdicts = judge_speedups(result);
    for (std::size_t m = 0; m < kBlockwiseMethods.size(); ++m) {
      rows.push_back(row_json(result, m, verdicts[m]));
    }
  }
  return rows;
}

Json own_plans_json(const PipeBdResults& results) {
  Json plans = Json::array();
  for (const SpeedupResult& result : results.speedups) {
    plans.push_back({{"task", result.published.task},
                     {"dataset", result.published.dataset},
                     {"groups", result.own.plan.groups},
                     {"cuts", result.own.plan.cuts},
                     {"step_ns", result.own.step.count()},
                     {"ahd_groups", result.distribution.groups},
                     {"ahd_cuts", result.distribution.cuts}});
  }
  return plans;
}

Json epoch_json(const EpochResult& result) {
  const auto shares = [](const EpochShares& of) {
    return Json{{"load_s", of.load / 100.0},
                {"teacher_s", of.teacher / 100.0},
                {"student_s", of.student / 100.0},
                {"idle_s", of.idle / 100.0}};
  };
  return {{"name", result.published.name},
          {"published", shares(result.published)},
          {"simulated", shares(result.simulated)}};
}

Json schedules_json(const PipeBdResults& results) {
  Json schedules = Json::array();
  for (const auto& [published, found, period, speedup] : results.schedules) {
    schedules.push_back({{"gpu", published.gpu},
                         {"published_groups", published.plan.groups},
                         {"published_cuts", published.plan.cuts},
                         {"groups", found.groups},
                         {"cuts", found.cuts},
                         {"cost_ns", found.cost.count()},
                         {"step_ns", period.count()},
                         {"speedup", speedup}});
  }
  return schedules;
}

Json varying_json(const VaryingResult& varying) {
  return {{"runs", varying.options.runs},     {"seed", varying.options.seed},
          {"steps", varying.options.steps},   {"steps_left_out", varying.options.steps},
          {"barrier_ms", varying.barrier_ms}, {"decoupled_ms", varying.decoupled_ms}};
}

}  // namespace

std::string pipe_bd_json(const PipeBdResults& results) {
  Json epoch = Json::array({epoch_json(results.data_parallel)});
  for (const EpochResult& rank : results.ranks) epoch.push_back(epoch_json(rank));
  return Json{{"speedups", speedups_json(results)},
              {"own_plans", own_plans_json(results)},
              {"epoch", epoch},
              {"schedules", schedules_json(results)},
              {"varying", varying_json(results.varying)},
              {"missed_speedups", list_missed_speedups(results)},
              {"idle_is_within_tenth", results.idle_is_within_tenth},
              {"schedules_are_exact", results.schedules_are_exact},
              {"varying_is_as_known", is_as_known(results.varying)}}
      .dump();
}

}  // namespace frazil
