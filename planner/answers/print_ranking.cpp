#include "planner/answers/print_ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/answers/print_proof.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/answer_parts.h"
#include "planner/prediction/doubts.h"
#include "planner/prediction/plan_notation.h"
#include "planner/schedules/pipeline_group.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

std::string list_cuts(const Plan& plan) {
  std::string text;
  for (const Stage& stage : plan.pipelines.front().stages) {
    if (&stage == &plan.pipelines.front().stages.front()) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ",", stage.layers.front().first.value);
  }
  return text.empty() ? "-" : text;
}

// True if no memory would help, because an interpreter refuses the candidate.
bool cannot_be_made(const Candidate& candidate) {
  return candidate.infeasible && candidate.infeasible->needed <= candidate.infeasible->available;
}

std::string cut_at(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

Json candidate_json(const Candidate& candidate, const Cluster& cluster) {
  const Plan& plan = candidate.plan;
  Json json = {{"summary", summarize(plan)},
               {"feasible", !candidate.infeasible.has_value()},
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
  Json pipelines = Json::array();
  for (const Pipeline& pipeline : plan.pipelines) {
    Json cuts = Json::array();
    for (std::size_t s = 1; s < pipeline.stages.size(); ++s) {
      cuts.push_back(pipeline.stages[s].layers.front().first.value);
    }
    pipelines.push_back(cuts);
  }
  json["cuts"] = pipelines;
  if (has_shared_stage(plan.pipelines.front())) {
    Json counts = Json::array();
    for (const Stage& stage : plan.pipelines.front().stages) counts.push_back(stage.devices.size());
    json["stage_devices"] = counts;
  }
  json["makespan_ns"] = candidate.makespan.count();
  json["samples_per_second"] = samples_per_second(plan, candidate.makespan);
  json.update(Json::parse(bounds_json(candidate.bounds)));
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

struct RankingCounts {
  std::int64_t fit = 0;
  std::int64_t too_large = 0;
  std::int64_t not_made = 0;
  std::int64_t bounded = 0;  // not tried, because their lower bounds are too high
};

std::int64_t& tally(RankingCounts& counts, Rejection::Why why) {
  switch (why) {
    case Rejection::Why::kBound:
      return counts.bounded;
    case Rejection::Why::kSlower:
      return counts.fit;
    case Rejection::Why::kMemory:
      return counts.too_large;
    case Rejection::Why::kRefused:
      return counts.not_made;
  }
  return counts.bounded;
}

RankingCounts count_candidates(const Ranking& ranking) {
  RankingCounts counts;
  for (const Candidate& candidate : ranking.candidates) {
    ++(cannot_be_made(candidate)          ? counts.not_made
       : candidate.infeasible.has_value() ? counts.too_large
                                          : counts.fit);
  }
  for (const RejectedShapes& rejected : ranking.rejected) {
    tally(counts, rejected.rejection.why) += rejected.candidates;
  }
  return counts;
}

// Tells what a search that ended before its answer was proven left out.
std::string text_of(const NotLookedAt& left, const Candidate& best) {
  const std::string text = fmt::format("{} not looked at; none takes less than {}",
                                       count_of(left.candidates, "plan"), to_text(left.at_least));
  if (best.makespan <= left.at_least) return text + ", and the best takes no more\n";
  return text + fmt::format(", and the best is {} above that\n",
                            percent(gap(best.makespan, left.at_least)));
}

std::string text_of(const RankingCounts& counts, std::size_t devices) {
  std::string text =
      fmt::format("{} {} on {}", count_of(counts.fit, "plan"), counts.fit == 1 ? "fits" : "fit",
                  count_of(static_cast<std::int64_t>(devices), "device"));
  text += fmt::format(", {} {}", counts.too_large, counts.too_large == 1 ? "does not" : "do not");
  if (counts.not_made > 0) text += fmt::format(", {} cannot be made", counts.not_made);
  if (counts.bounded > 0) text += fmt::format(", {} cannot be as fast", counts.bounded);
  return text + "\n";
}

// True for plans that take equally long and differ only in schedule, depth and memory.
bool share_a_row(const Candidate& a, const Candidate& b) {
  if (a.makespan != b.makespan) return false;
  Plan plan = b.plan;
  plan.schedule = a.plan.schedule;
  return plan == a.plan;
}

// Candidates that share a row, in the order of the ranking.
using Row = std::vector<const Candidate*>;

std::vector<Row> list_rows(const Ranking& ranking) {
  std::vector<Row> rows;
  for (const Candidate& candidate : ranking.candidates) {
    if (candidate.infeasible) break;
    const auto own = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
      return share_a_row(*row.front(), candidate);
    });
    if (own == rows.end()) {
      rows.push_back({&candidate});
    } else {
      own->push_back(&candidate);
    }
  }
  return rows;
}

// Returns "a b | d c" if pipelines do not take the devices as they are listed; else "".
std::string list_devices(const Plan& plan, const Cluster& cluster) {
  std::string text;
  std::vector<DeviceId> all;
  for (const Pipeline& pipeline : plan.pipelines) {
    const std::vector<DeviceId> devices = devices_in_order(pipeline);
    // This pipeline runs the other way through the devices of an earlier one.
    if (std::find(all.begin(), all.end(), devices.front()) != all.end()) continue;
    if (!text.empty()) text += " |";
    for (const DeviceId device : devices) {
      text += (text.empty() ? "" : " ") + cluster.devices[device.index()].name;
      all.push_back(device);
    }
  }
  return std::is_sorted(all.begin(), all.end()) ? "" : text;
}

// Returns how many devices each stage lies on: "3+1".
std::string list_counts(const Pipeline& pipeline) {
  std::string text;
  for (const Stage& stage : pipeline.stages) {
    text += fmt::format("{}{}", text.empty() ? "" : "+", stage.devices.size());
  }
  return text;
}

struct Widths {
  std::size_t shape = 8;
  std::size_t schedule = 8;
};

Widths find_widths(const Ranking& ranking) {
  Widths widths;
  for (const Candidate& candidate : ranking.candidates) {
    widths.shape = std::max(widths.shape, shape_notation(candidate.plan).size());
    widths.schedule = std::max(widths.schedule, variant_notation(candidate.plan).size());
  }
  return widths;
}

// Returns "4 of 8", or "4 of 8/7" if the last of them has 7 samples.
std::string micro_batches_of(const Plan& plan) {
  const int last = plan.batch_size - (plan.micro_batches() - 1) * plan.micro_batch_size;
  return fmt::format("{} of {}{}", plan.micro_batches(), plan.micro_batch_size,
                     last < plan.micro_batch_size ? fmt::format("/{}", last) : "");
}

std::string print_head(const Widths& widths) {
  return fmt::format("{:>4}  {:>12}  {:>10}  {:<{}}  {:<{}}  {:>9}  {:>11}  {:>9}  {}\n", "rank",
                     "makespan", "samples/s", "stages", widths.shape, "schedule", widths.schedule,
                     "micro-b.", "memory peak", "above lb", "cuts");
}

// Returns the row of the first candidate; the other names and the devices stand below the schedule.
std::string print_row(const Row& row, int rank, const Widths& widths, const Cluster& cluster,
                      const std::string& above) {
  const Candidate& first = *row.front();
  const Plan& plan = first.plan;
  std::string text = fmt::format(
      "{:>4}  {:>12}  {:>10.1f}  {:<{}}  {:<{}}  {:>9}  {:>11}  {:>9}  {}\n", rank,
      to_text(first.makespan), samples_per_second(plan, first.makespan), shape_notation(plan),
      widths.shape, variant_notation(plan), widths.schedule, micro_batches_of(plan),
      to_text(fullest_device(first)), above, cut_at(list_cuts(plan), 40));
  const std::string margin(34 + widths.shape, ' ');
  std::string others;
  for (auto other = row.begin() + 1; other != row.end(); ++other) {
    others += (others.empty() ? "" : ", ") + variant_notation((*other)->plan);
    const Bytes memory = fullest_device(**other);
    if (memory != fullest_device(first)) others += fmt::format(" ({})", to_text(memory));
  }
  if (!others.empty()) text += fmt::format("{}or {}\n", margin, others);
  if (has_shared_stage(plan.pipelines.front())) {
    text += fmt::format("{}stages on {} devices\n", margin, list_counts(plan.pipelines.front()));
  }
  const std::string devices = list_devices(plan, cluster);
  if (!devices.empty()) text += fmt::format("{}on {}\n", margin, cut_at(devices, 80));
  return text;
}

std::string print_infeasible(const Candidate& candidate, const Widths& widths) {
  return fmt::format("      {:<{}}  {:<{}}  {:>9}  {}\n", shape_notation(candidate.plan),
                     widths.shape, variant_notation(candidate.plan), widths.schedule,
                     micro_batches_of(candidate.plan), candidate.infeasible->reason);
}

}  // namespace

std::string print_ranking(const Ranking& ranking, Setting setting, int top) {
  const Cluster& cluster = setting.cluster();
  const Widths widths = find_widths(ranking);
  std::string text = print_head(widths);
  bool extrapolated = false;
  bool caches = false;
  Suffixes shown;
  int count = 0;
  for (const Row& row : list_rows(ranking)) {
    if (++count > top) break;
    const std::string above = print_gap(ranking, *row.front());
    text += print_row(row, count, widths, cluster, above);
    for (const Candidate* const candidate : row) shown.add(suffixes_of(candidate->plan));
    extrapolated = extrapolated || row.front()->extrapolated;
    caches = caches || row.front()->plan.cache_frozen_prefix;
  }
  count = 0;
  std::string infeasible;
  for (const Candidate& candidate : ranking.candidates) {
    if (!candidate.infeasible) continue;
    if (++count > top) break;
    infeasible += print_infeasible(candidate, widths);
    shown.add(suffixes_of(candidate.plan));
  }
  const RankingCounts counts = count_candidates(ranking);
  text += text_of(counts, cluster.devices.size());
  if (counts.fit > 0) text += fits_if(setting.profile(), counts.fit == 1 ? "it fits" : "they fit");
  if (ranking.left) text += text_of(*ranking.left, *ranking.best());
  if (caches) text += kCacheNote;
  return text + infeasible + explain_suffixes(shown) + list_flags(setting.profile(), extrapolated) +
         list_free_links(cluster);
}

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
  if (ranking.left) {
    json["not_looked_at"] = ranking.left->candidates;
    json["not_looked_at_take_at_least_ns"] = ranking.left->at_least.count();
  }
  json.update(Json::parse(doubts_json(profile)));
  json.update(Json::parse(more));
  return json.dump() + "\n";
}

}  // namespace frazil
