#include "planner/answers/ranking_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/answers/ranking_counts.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/answer_parts.h"
#include "planner/prediction/doubts.h"
#include "planner/prediction/plan_notation.h"
#include "planner/prediction/process_notes.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

// Returns the first layers of the stages but the first.
Json cuts_json(const Pipeline& pipeline) {
  Json cuts = Json::array();
  for (std::size_t s = 1; s < pipeline.stages.size(); ++s) {
    cuts.push_back(pipeline.stages[s].layers.front().first.value);
  }
  return cuts;
}

// Returns for each stage its ranges [first, last].
Json ranges_json(const Pipeline& pipeline) {
  Json stages = Json::array();
  for (const Stage& stage : pipeline.stages) {
    Json ranges = Json::array();
    for (const LayerRange& range : stage.layers) {
      ranges.push_back({range.first.value, range.last.value});
    }
    stages.push_back(ranges);
  }
  return stages;
}

Json candidate_json(const Candidate& candidate, const Cluster& cluster) {
  const Plan& plan = candidate.plan;
  const ParallelShape shape = parallel_shape(plan);
  Json json = {{"summary", summarize(plan)},
               {"feasible", !candidate.infeasible.has_value()},
               {"pp", shape.pipeline_devices.front()},
               {"dp", shape.replicas},
               {"chunks_per_device", shape.chunks},
               {"stages", plan.pipelines.front().stages.size()},
               {"replicas", plan.pipelines.size()},
               {"schedule", schedule_notation(plan)},
               {"micro_batch_size", plan.micro_batch_size},
               {"micro_batches", plan.micro_batches()}};
  if (const auto* named = std::get_if<NamedSchedule>(&plan.schedule)) {
    json["chunks"] = named->chunks;
    if (named->in_flight) json["in_flight"] = *named->in_flight;
  }
  json["recompute"] = recomputes(plan);
  if (plan.cache_frozen_prefix) json["cached_prefix"] = true;
  if (plan.steps_ahead > 0) json["steps_ahead"] = plan.steps_ahead;
  const bool are_cut = std::all_of(plan.pipelines.begin(), plan.pipelines.end(), is_consecutive);
  Json pipelines = Json::array();
  for (const Pipeline& pipeline : plan.pipelines) {
    pipelines.push_back(are_cut ? cuts_json(pipeline) : ranges_json(pipeline));
  }
  json[are_cut ? "cuts" : "layers"] = pipelines;
  if (has_shared_stage(plan.pipelines.front())) {
    Json counts = Json::array();
    for (const Stage& stage : plan.pipelines.front().stages) counts.push_back(stage.devices.size());
    json["stage_devices"] = counts;
  }
  json["makespan_ns"] = candidate.makespan.count();
  json["samples_per_second"] = samples_per_second(plan, candidate.makespan);
  json.update(Json::parse(bounds_json(candidate.bounds)));
  json.update(Json::parse(commit_round_json(plan, cluster)));
  Json devices = Json::array();
  for (std::size_t d = 0; d < candidate.memory.size(); ++d) {
    devices.push_back(Json::parse(memory_json(candidate.memory[d], cluster.devices[d])));
  }
  json["devices"] = devices;
  json["extrapolated"] = candidate.extrapolated;
  if (candidate.infeasible) {
    json["reason"] = candidate.infeasible->reason;
    json["device"] = candidate.infeasible->device.value;
    json["needed_bytes"] = candidate.infeasible->needed.count;
    json["available_bytes"] = candidate.infeasible->available.count;
  }
  return json;
}

}  // namespace

std::string ranking_json(const Ranking& ranking, Setting setting, int top,
                         const std::string& more) {
  const ModelProfile& profile = setting.profile();
  const Cluster& cluster = setting.cluster();
  Json feasible = Json::array();
  Json infeasible = Json::array();
  for (const Candidate& candidate : ranking.candidates) {
    Json& list = candidate.infeasible ? infeasible : feasible;
    if (static_cast<int>(list.size()) < top) list.push_back(candidate_json(candidate, cluster));
  }
  const RankingCounts counts = count_candidates(ranking);
  Json json = {{"candidates", counts.fit + counts.too_large + counts.not_made + counts.bounded},
               {"fit", counts.fit},
               {"do_not_fit", counts.too_large},
               {"cannot_be_made", counts.not_made},
               {"cannot_be_as_fast", counts.bounded},
               {"backward_was_split_by_rule", profile.backward_was_split_by_rule},
               {"bytes_are_placeholders", !unknown_bytes(profile).empty()},
               {"feasible", feasible},
               {"infeasible", infeasible}};
  if (ranking.tied > 0) json["equally_fast"] = ranking.tied;
  if (ranking.left) {
    json["not_looked_at"] = ranking.left->candidates;
    json["not_looked_at_take_at_least_ns"] = ranking.left->at_least.count();
  }
  json.update(Json::parse(doubts_json(profile)));
  json.update(Json::parse(processes_json(cluster)));
  json.update(Json::parse(more));
  return json.dump() + "\n";
}

}  // namespace frazil
