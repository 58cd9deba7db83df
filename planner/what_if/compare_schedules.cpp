#include "planner/what_if/compare_schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

ComparedSchedule ask(const WhatIf& question, const ScheduleFacts& facts, int chunks,
                     const ComparisonOptions& options) {
  ComparedSchedule row;
  row.what_if = question;
  row.what_if.schedule = facts.kind;
  row.what_if.chunks = chunks;
  row.what_if.in_flight.reset();
  row.copies = directions(facts.placement);
  try {
    row.answer = answer_what_if(make_what_if(row.what_if), question.memory);
  } catch (const InfeasibleError& error) {
    row.reason = error.what();
    return row;
  }
  const std::vector<int>& peaks = row.answer.peak_chunks;
  row.most_in_flight = static_cast<double>(*std::max_element(peaks.begin(), peaks.end())) / chunks;
  if (options.most_in_flight && row.most_in_flight > *options.most_in_flight) {
    row.reason = fmt::format("needs {} micro-batches in flight per device, limit {}",
                             row.most_in_flight, *options.most_in_flight);
  }
  if (question.memory && row.reason.empty()) {
    const auto excess = find_excess(*question.memory, row.answer.peak_bytes);
    if (excess) row.reason = *excess + tell_full_count(*question.memory, facts.kind);
  }
  return row;
}

Bytes most_bytes(const WhatIfAnswer& answer) {
  return *std::max_element(answer.peak_bytes.begin(), answer.peak_bytes.end());
}

// Says what all rows have in common: they are orders by rule, none is searched.
std::string describe_question(const WhatIf& question) {
  return fmt::format(
      "{} devices (pp {}, dp 1), {} micro-batches; v chunks on a device; each schedule in its own "
      "order and depth, none searched\n",
      question.stages, question.stages, question.micro_batches);
}

std::string name_of(const ComparedSchedule& row) {
  const ScheduleFacts& facts = facts_of(row.what_if.schedule);
  const std::string name(schedule_name(facts.kind));
  return facts.legal == ScheduleFacts::Chunks::kFixed
             ? name
             : fmt::format("{} v={}", name, *row.what_if.chunks);
}

}  // namespace

std::vector<ComparedSchedule> compare_schedules(const WhatIf& question,
                                                const ComparisonOptions& options) {
  std::vector<ComparedSchedule> compared;
  for (const ScheduleFacts& facts : all_schedules()) {
    if (facts.versions != WeightVersions::kSync) continue;
    const bool open = facts.legal != ScheduleFacts::Chunks::kFixed;
    for (const int chunks : open ? options.chunks : std::vector<int>{facts.chunks}) {
      compared.push_back(ask(question, facts, chunks, options));
    }
  }
  std::stable_sort(compared.begin(), compared.end(),
                   [](const ComparedSchedule& a, const ComparedSchedule& b) {
                     if (a.reason.empty() != b.reason.empty()) return a.reason.empty();
                     if (!a.reason.empty()) return false;
                     return std::pair(a.answer.makespan, a.most_in_flight) <
                            std::pair(b.answer.makespan, b.most_in_flight);
                   });
  return compared;
}

std::string print_comparison(const std::vector<ComparedSchedule>& compared) {
  const bool has_bytes = !compared.empty() && compared.front().what_if.memory.has_value();
  std::string text = compared.empty() ? "" : describe_question(compared.front().what_if);
  text += fmt::format("{:<20} {:>12} {:>8} {:>12} {:>8} {:>10} {:>10}{}\n", "schedule", "makespan",
                      "bubble", "span", "bubble", "in flight", "parameters",
                      has_bytes ? fmt::format(" {:>12}", "peak") : "");
  for (const ComparedSchedule& row : compared) {
    if (!row.reason.empty()) continue;
    text +=
        fmt::format("{:<20} {:>12} {:>7.1f}% {:>12} {:>7.1f}% {:>10} {:>9}x{}\n", name_of(row),
                    to_text(row.answer.makespan), 100 * row.answer.bubble, to_text(row.answer.span),
                    100 * row.answer.bubble_span, fmt::format("{}", row.most_in_flight), row.copies,
                    has_bytes ? fmt::format(" {:>12}", to_text(most_bytes(row.answer))) : "");
  }
  for (const ComparedSchedule& row : compared) {
    if (!row.reason.empty()) text += fmt::format("{:<20} excluded: {}\n", name_of(row), row.reason);
  }
  const bool was_split = !compared.empty() && compared.front().what_if.backward_was_split;
  return text + (was_split ? std::string(kSplitNote) : "");
}

std::string comparison_json(const std::vector<ComparedSchedule>& compared) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ComparedSchedule& row : compared) {
    nlohmann::ordered_json json = {{"schedule", schedule_name(row.what_if.schedule)},
                                   {"chunks", *row.what_if.chunks}};
    if (row.reason.empty()) {
      json["makespan_ns"] = row.answer.makespan.count();
      json["span_ns"] = row.answer.span.count();
      json["bubble"] = row.answer.bubble;
      json["bubble_span"] = row.answer.bubble_span;
      json["most_in_flight"] = row.most_in_flight;
      json["parameter_copies"] = row.copies;
      if (row.what_if.memory) json["peak_bytes"] = most_bytes(row.answer).count;
    } else {
      json["infeasible"] = row.reason;
    }
    rows.push_back(json);
  }
  nlohmann::ordered_json answer{{"compared", rows}};
  if (!compared.empty() && compared.front().what_if.backward_was_split) {
    answer["backward_was_split_by_rule"] = true;
  }
  return answer.dump() + "\n";
}

}  // namespace frazil
