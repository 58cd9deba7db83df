#include "planner/answers/print_ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "planner/answers/print_proof.h"
#include "planner/answers/ranking_counts.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/answer_parts.h"
#include "planner/prediction/doubts.h"
#include "planner/prediction/plan_notation.h"
#include "planner/prediction/process_notes.h"
#include "planner/schedules/pipeline_group.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

// Returns "2,5", the first layers of the stages but the first, or "0-1+4-5 2-3", the layers of each
// stage, where first layers do not tell which others a stage holds.
std::string list_cuts(const Plan& plan) {
  const Pipeline& pipeline = plan.pipelines.front();
  if (pipeline.stages.size() == 1) return "-";
  const bool is_cut = std::all_of(plan.pipelines.begin(), plan.pipelines.end(), is_consecutive);
  std::string text;
  for (std::size_t s = is_cut ? 1 : 0; s < pipeline.stages.size(); ++s) {
    const Stage& stage = pipeline.stages[s];
    if (!text.empty()) text += is_cut ? "," : " ";
    text += is_cut ? std::to_string(stage.layers.front().first.value) : layers_text(stage);
  }
  return text;
}

// Tells what a search that ended before its answer was proven left out.
std::string text_of(const NotLookedAt& left, const Candidate& best) {
  const std::string text = fmt::format("{} not looked at; none takes less than {}",
                                       count_of(left.candidates, "plan"), to_text(left.at_least));
  if (best.makespan <= left.at_least) return text + ", and the best takes no more\n";
  return text + fmt::format(", and the best is {} above that\n",
                            percent(gap(best.makespan, left.at_least)));
}

// Where bytes are placeholders the condition stands with the count, which says nothing without it.
std::string text_of(const RankingCounts& counts, std::size_t devices, const ModelProfile& profile) {
  std::string text =
      fmt::format("{} {} on {}", count_of(counts.fit, "plan"), counts.fit == 1 ? "fits" : "fit",
                  count_of(static_cast<std::int64_t>(devices), "device"));
  const bool is_unknown = is_memory_unknown(profile);
  if (counts.fit > 0 && is_unknown) text += " if " + memory_condition(profile.doubts);
  text += fmt::format("{} {} {}", is_unknown ? ";" : ",", counts.too_large,
                      counts.too_large == 1 ? "does not" : "do not");
  if (counts.not_made > 0) text += fmt::format(", {} cannot be made", counts.not_made);
  if (counts.bounded > 0) text += fmt::format(", {} cannot be as fast", counts.bounded);
  text += "\n";
  if (counts.fit == 0 || is_unknown) return text;
  return text + fits_if(profile, counts.fit == 1 ? "it fits" : "they fit");
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

// Returns "a b | d c" if pipelines do not take the devices as they are listed; else "". Of more
// than 16 devices the first eight are named.
std::string list_devices(const Plan& plan, const Cluster& cluster) {
  constexpr std::size_t kMostListed = 16;
  constexpr std::size_t kNamed = 8;
  std::string text;
  std::string named;
  std::vector<DeviceId> all;
  for (const Pipeline& pipeline : plan.pipelines) {
    const std::vector<DeviceId> devices = devices_in_order(pipeline);
    // This pipeline runs the other way through the devices of an earlier one.
    if (std::find(all.begin(), all.end(), devices.front()) != all.end()) continue;
    if (!all.empty()) text += " |";
    for (const DeviceId device : devices) {
      if (all.size() == kNamed) named = text;
      text += (text.empty() ? "" : " ") + cluster.devices[device.index()].name;
      all.push_back(device);
    }
  }
  if (std::is_sorted(all.begin(), all.end())) return "";
  return all.size() <= kMostListed ? text : fmt::format("{} ... ({} devices)", named, all.size());
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
  std::size_t devices = 2;
  std::size_t schedule = 8;
  std::size_t memory = 11;
  std::size_t micro_batches = 9;
};

// Returns the columns of devices in a pipeline, pipelines, and stages on a device.
std::string shape_columns(std::string_view pp, std::string_view dp, std::string_view chunks,
                          const Widths& widths) {
  return fmt::format("{:>{}}  {:>4}  {:>6}", pp, widths.devices, dp, chunks);
}

std::string shape_columns(const Plan& plan, const Widths& widths) {
  const ParallelShape shape = parallel_shape(plan);
  return shape_columns(pipeline_devices_text(shape), std::to_string(shape.replicas),
                       std::to_string(shape.chunks), widths);
}

// Returns "4 of 8", or "3 of 8 + 1 of 7" if the last of them has 7 samples.
std::string micro_batches_of(const Plan& plan) {
  const int count = plan.micro_batches();
  const int size = plan.micro_batch_size;
  const int last = plan.batch_size - (count - 1) * size;
  if (last == size || count == 1) return fmt::format("{} of {}", count, last);
  return fmt::format("{} of {} + 1 of {}", count - 1, size, last);
}

Widths find_widths(const Ranking& ranking, const ModelProfile& profile) {
  Widths widths;
  for (const Candidate& candidate : ranking.candidates) {
    const std::string devices = pipeline_devices_text(parallel_shape(candidate.plan));
    widths.devices = std::max(widths.devices, devices.size());
    widths.schedule = std::max(widths.schedule, variant_notation(candidate.plan).size());
    widths.memory = std::max(widths.memory, memory_text(profile, fullest_device(candidate)).size());
    widths.micro_batches = std::max(widths.micro_batches, micro_batches_of(candidate.plan).size());
  }
  return widths;
}

// Counts the rows in front that are equally fast within the noise.
int count_tied(const Ranking& ranking, const std::vector<Row>& rows) {
  const Candidate* const end = ranking.candidates.data() + ranking.tied;
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(), [&](const Row& row) { return row.front() < end; }));
}

// One line of the table but for its cuts. `above` is empty if the table has no such column.
std::string print_columns(std::string_view rank, std::string_view makespan, std::string_view speed,
                          std::string_view shape, std::string_view schedule, std::string_view micro,
                          std::string_view memory, std::string_view above, const Widths& widths) {
  const std::string text = fmt::format("{:>5}  {:>12}  {:>10}  {}  {:<{}}  {:>{}}  {:>{}}  ", rank,
                                       makespan, speed, shape, schedule, widths.schedule, micro,
                                       widths.micro_batches, memory, widths.memory);
  return above.empty() ? text : text + fmt::format("{:>9}  ", above);
}

std::string print_head(const Widths& widths, bool is_bounded) {
  return print_columns("rank", "makespan", "samples/s", shape_columns("pp", "dp", "chunks", widths),
                       "schedule", "micro-b.", "memory peak", is_bounded ? "above lb" : "",
                       widths) +
         "cuts\n";
}

// Returns the row of the first candidate; the other names and the devices stand below the schedule.
std::string print_row(const Row& row, const std::string& rank, const Widths& widths,
                      Setting setting, const std::string& above) {
  const Candidate& first = *row.front();
  const auto peak_of = [&](const Candidate& candidate) {
    return memory_text(setting.profile(), fullest_device(candidate));
  };
  const Plan& plan = first.plan;
  std::string text = print_columns(rank, to_text(first.makespan),
                                   fmt::format("{:.1f}", samples_per_second(plan, first.makespan)),
                                   shape_columns(plan, widths), variant_notation(plan),
                                   micro_batches_of(plan), peak_of(first), above, widths) +
                     list_cuts(plan) + "\n";
  const std::string margin(35 + shape_columns(plan, widths).size(), ' ');
  // Of one schedule's depths that take equally long the first holds least; the rest say no more.
  std::set<std::string> told = {schedule_notation(plan)};
  std::string others;
  for (auto other = row.begin() + 1; other != row.end(); ++other) {
    if (!told.insert(schedule_notation((*other)->plan)).second) continue;
    others += (others.empty() ? "" : ", ") + variant_notation((*other)->plan);
    const Bytes memory = fullest_device(**other);
    if (memory != fullest_device(first)) others += fmt::format(" ({})", peak_of(**other));
  }
  if (!others.empty()) text += fmt::format("{}or {}\n", margin, others);
  if (has_shared_stage(plan.pipelines.front())) {
    text += fmt::format("{}stages on {} devices\n", margin, list_counts(plan.pipelines.front()));
  }
  if (plan.steps_ahead > 0) {
    text += fmt::format("{}devices up to {} ahead of each other\n", margin,
                        count_of(plan.steps_ahead, "step"));
  }
  const std::string devices = list_devices(plan, setting.cluster());
  if (!devices.empty()) text += fmt::format("{}on {}\n", margin, devices);
  return text;
}

std::string print_infeasible(const Candidate& candidate, const Widths& widths) {
  return fmt::format("       {}  {:<{}}  {:>{}}  {}\n", shape_columns(candidate.plan, widths),
                     variant_notation(candidate.plan), widths.schedule,
                     micro_batches_of(candidate.plan), widths.micro_batches,
                     candidate.infeasible->reason);
}

// Says what the mark beside a rank means; nothing if no row has one.
std::string explain_ties(const Ranking& ranking, const std::vector<Row>& rows) {
  const Duration fastest = ranking.fastest()->makespan;
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Row& each) { return each.front()->makespan == fastest; });
  return fmt::format(
      "=: as fast as the fastest (rank {}) within the noise, the simplest first; --noise 0 ranks "
      "by "
      "time\n",
      row - rows.begin() + 1);
}

}  // namespace

std::string print_ranking(const Ranking& ranking, Setting setting, int top) {
  const Cluster& cluster = setting.cluster();
  const Widths widths = find_widths(ranking, setting.profile());
  const bool is_bounded = has_proof(ranking);
  std::string text = print_head(widths, is_bounded);
  bool extrapolated = false;
  bool caches = false;
  Suffixes shown;
  std::vector<const Plan*> plans;
  int count = 0;
  const std::vector<Row> rows = list_rows(ranking);
  const int tied = count_tied(ranking, rows);
  for (const Row& row : rows) {
    if (++count > top) break;
    const std::string above = is_bounded ? print_gap(ranking, *row.front()) : "";
    const std::string mark = tied > 1 && count <= tied ? "=" : "";
    text += print_row(row, mark + std::to_string(count), widths, setting, above);
    for (const Candidate* const candidate : row) {
      shown.add(suffixes_of(candidate->plan));
      plans.push_back(&candidate->plan);
    }
    extrapolated = extrapolated || row.front()->extrapolated;
    caches = caches || row.front()->plan.cache_frozen_prefix;
  }
  if (tied > 1) text += explain_ties(ranking, rows);
  count = 0;
  std::string infeasible;
  for (const Candidate& candidate : ranking.candidates) {
    if (!candidate.infeasible) continue;
    if (++count > top) break;
    infeasible += print_infeasible(candidate, widths);
    shown.add(suffixes_of(candidate.plan));
  }
  const RankingCounts counts = count_candidates(ranking);
  text += text_of(counts, cluster.devices.size(), setting.profile());
  if (ranking.left) text += text_of(*ranking.left, *ranking.fastest());
  if (caches) text += kCacheNote;
  return text + infeasible + explain_suffixes(shown) + list_flags(setting.profile(), extrapolated) +
         list_free_links(cluster) + list_processes(cluster) + list_commit_rounds(plans, cluster);
}

}  // namespace frazil
