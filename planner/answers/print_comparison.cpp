#include "planner/answers/print_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/prediction/answer_parts.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

double samples_per_second(const Candidate& candidate) {
  return samples_per_second(candidate.plan, candidate.makespan);
}

Bytes largest_peak(const Candidate& candidate) {
  Bytes largest;
  for (const MemoryPeak& peak : candidate.memory) largest = std::max(largest, peak.total);
  return largest;
}

std::string row(std::string_view name, const Candidate& candidate) {
  std::string text = fmt::format("{:<16}  {:>12}  {:>10.1f}  {:>11}  {}\n", name,
                                 to_text(candidate.makespan), samples_per_second(candidate),
                                 to_text(largest_peak(candidate)), summarize(candidate.plan));
  if (candidate.infeasible) {
    text += fmt::format("{:<16}  cannot run: {}\n", "", candidate.infeasible->reason);
  }
  return text;
}

Json candidate_json(const Candidate& candidate) {
  Json json = {{"summary", summarize(candidate.plan)},
               {"feasible", !candidate.infeasible.has_value()},
               {"makespan_ns", candidate.makespan.count()},
               {"samples_per_second", samples_per_second(candidate)},
               {"memory_peak_bytes", largest_peak(candidate).count},
               {"extrapolated", candidate.extrapolated}};
  if (candidate.infeasible) json["reason"] = candidate.infeasible->reason;
  return json;
}

// Prints what the planner itself minimizes, which is not what the simulator times, and what it does
// not look at.
std::string print_remarks(std::string_view planner, const PlannerRemarks& remarks) {
  std::string text;
  if (remarks.bottleneck) {
    text += fmt::format("{} itself reckons with {:.6f} s from one micro-batch to the next\n",
                        planner, static_cast<double>(remarks.bottleneck->count()) / 1e9);
  }
  if (remarks.left_out > 0) {
    text += fmt::format("{} looks for no cut at {} named __getitem__ that nothing reads\n", planner,
                        count_of(remarks.left_out, "layer"));
  }
  return text;
}

}  // namespace

std::optional<double> makespan_ratio(const PlannerComparison& comparison) {
  const Candidate* own = comparison.own;
  if (own == nullptr || own->infeasible || comparison.judged.candidate.infeasible)
    return std::nullopt;
  if (own->makespan.count() == 0) return std::nullopt;
  return static_cast<double>(comparison.judged.candidate.makespan.count()) /
         static_cast<double>(own->makespan.count());
}

std::string print_comparison(const PlannerComparison& comparison) {
  std::string text = fmt::format("{:<16}  {:>12}  {:>10}  {:>11}  {}\n", "planner", "makespan",
                                 "samples/s", "memory peak", "plan");
  text += row(planner_name(comparison.planner), comparison.judged.candidate);
  bool extrapolated = comparison.judged.candidate.extrapolated;
  if (comparison.own != nullptr) {
    text += row("frazil", *comparison.own);
    extrapolated = extrapolated || comparison.own->extrapolated;
  } else {
    text += fmt::format("{:<16}  no plan is feasible\n", "frazil");
  }
  if (const auto ratio = makespan_ratio(comparison)) {
    text += fmt::format("{} takes {:.3f} times as long as frazil's best\n",
                        planner_name(comparison.planner), *ratio);
  }
  text += fmt::format("{} assumes: {}\n", planner_name(comparison.planner),
                      assumptions_of(comparison.planner));
  text += print_remarks(planner_name(comparison.planner), comparison.judged.remarks);
  return text + list_flags(comparison.profile, extrapolated);
}

std::string comparison_json(const PlannerComparison& comparison) {
  const auto ratio = makespan_ratio(comparison);
  Json json = {{"planner", planner_name(comparison.planner)},
               {"assumes", assumptions_of(comparison.planner)},
               {"named", candidate_json(comparison.judged.candidate)},
               {"frazil", comparison.own == nullptr ? Json() : candidate_json(*comparison.own)},
               {"ratio", ratio ? Json(*ratio) : Json()},
               {"backward_was_split_by_rule", comparison.profile.backward_was_split_by_rule}};
  const PlannerRemarks& remarks = comparison.judged.remarks;
  if (remarks.bottleneck) json["bottleneck_ns"] = remarks.bottleneck->count();
  if (remarks.left_out > 0) json["layers_left_out"] = remarks.left_out;
  return json.dump() + "\n";
}

}  // namespace frazil
