#include "analysis/tables/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profiles/error.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

// Counts code points: every byte but the continuation bytes of UTF-8.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) & 0xC0U) != 0x80U;
  }));
}

// Decides whether a heading is set right, to stand over its numbers.
bool is_number_column(const Table& table, std::size_t column) {
  bool any = false;
  for (const auto& row : table.rows) {
    if (row[column].empty()) continue;
    if (!is_number(row[column])) return false;
    any = true;
  }
  return any;
}

void append_cell(std::string& line, const std::string& cell, std::size_t width, bool right) {
  const std::string padding(width - width_of(cell), ' ');
  line += right ? padding + cell : cell + padding;
  line += "  ";
}

void append_line(std::string& text, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
}

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string ratio_text(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:.3f}", ratio) : "-";
}

std::string stage_text(const ActionRow& row) {
  return row.pipeline.value == 0 ? fmt::format("{}", row.stage.value)
                                 : fmt::format("{}:{}", row.pipeline.value, row.stage.value);
}

// Explains the stages of further pipelines, and what the measured times of messages and collectives
// hold beside work.
std::string explain_rows(const std::vector<ActionRow>& rows) {
  std::string text;
  const auto second = std::find_if(rows.begin(), rows.end(),
                                   [](const ActionRow& row) { return row.pipeline.value > 0; });
  if (second != rows.end()) {
    text += fmt::format("{}: stage {} of pipeline {}\n", stage_text(*second), second->stage.value,
                        second->pipeline.value);
  }
  std::vector<std::string_view> told;
  for (const ActionRow& row : rows) {
    const std::string_view remark = remark_on(row.kind);
    if (remark.empty() || std::count(told.begin(), told.end(), remark) > 0) continue;
    told.push_back(remark);
    text += fmt::format("measured {}: {}\n", kind_name(row.kind), remark);
  }
  return text;
}

std::string describe_spread(const std::vector<StepRow>& steps) {
  std::vector<Duration> measured;
  measured.reserve(steps.size());
  for (const StepRow& row : steps) measured.push_back(row.measured);
  std::sort(measured.begin(), measured.end());
  return fmt::format("{} measured steps: shortest {:.3f} ms, median {:.3f} ms, longest {:.3f} ms\n",
                     measured.size(), to_ms(measured.front()),
                     to_ms(measured[(measured.size() - 1) / 2]), to_ms(measured.back()));
}

}  // namespace

bool is_number(const std::string& cell) {
  if (cell.empty() || cell.find(' ') != std::string::npos) return false;
  return (cell[0] >= '0' && cell[0] <= '9') || cell[0] == '-' || cell[0] == '+';
}

std::string to_text(const Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& cell : table.header) widths.push_back(width_of(cell));
  for (const auto& row : table.rows) {
    ENSURE(row.size() == table.header.size(), "a row of a table is as long as its header");
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string head;
  std::string rule;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    append_cell(head, table.header[i], widths[i], is_number_column(table, i));
    rule += std::string(widths[i], '-') + "  ";
  }
  std::string text;
  append_line(text, head);
  append_line(text, rule);
  for (const auto& row : table.rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      append_cell(line, row[i], widths[i], is_number(row[i]));
    }
    append_line(text, line);
  }
  return text;
}

std::string to_text(const Comparison& comparison) {
  // Times have three decimals, of a unit in which the step is not tiny.
  const bool is_short =
      std::max(comparison.predicted_step, comparison.measured_step) < milliseconds{10};
  const std::string unit = is_short ? "us" : "ms";
  const auto time_text = [is_short](Duration duration) {
    return fmt::format("{:.3f}", static_cast<double>(duration.count()) / (is_short ? 1e3 : 1e6));
  };
  Table table{
      .header = {"stage", "action", "count", "predicted " + unit, "measured " + unit, "ratio"},
      .rows = {}};
  for (const ActionRow& row : comparison.actions) {
    table.rows.push_back({stage_text(row), std::string(kind_name(row.kind)),
                          std::to_string(row.count), time_text(row.predicted),
                          time_text(row.measured), ratio_text(row.ratio())});
  }
  table.rows.push_back({"step", "", std::to_string(comparison.steps.size()),
                        time_text(comparison.predicted_step), time_text(comparison.measured_step),
                        ratio_text(comparison.step_ratio)});
  std::string text = to_text(table);
  if (comparison.steps.size() > 1) text += describe_spread(comparison.steps);
  text += explain_rows(comparison.actions);
  if (!comparison.only_predicted.empty()) {
    text += "only predicted: " + join(comparison.only_predicted) + "\n";
  }
  if (!comparison.only_measured.empty()) {
    text += "only measured: " + join(comparison.only_measured) + "\n";
  }
  return text;
}

}  // namespace frazil
