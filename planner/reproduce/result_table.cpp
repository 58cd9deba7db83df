#include "planner/reproduce/result_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

namespace frazil {
namespace {

std::string_view role_name(RowRole role) {
  switch (role) {
    case RowRole::kPrediction:
      return "prediction";
    case RowRole::kCalibration:
      return "calibration";
    case RowRole::kUpperBound:
      return "upper bound";
  }
  return "";
}

std::string describe_row(const ResultRow& row, const std::optional<double>& bar) {
  std::string text;
  if (row.role != RowRole::kPrediction) text += role_name(row.role);
  if (bar && !meets_bar(row, *bar)) text += text.empty() ? "misses" : ", misses";
  if (!row.reason.empty()) text += (text.empty() ? "" : ": ") + row.reason;
  return text;
}

// Prints three significant digits; whole numbers from 100 on.
std::string print_number(double value) {
  return std::abs(value) < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

// Rounds values for JSON, because the last bits of a quotient mean nothing.
double round_to_micro(double value) { return std::round(value * 1e6) / 1e6; }

}  // namespace

bool meets_bar(const ResultRow& row, double bar) {
  if (row.role == RowRole::kUpperBound) return row.simulated <= row.published;
  return std::abs(row.error()) <= bar;
}

std::string print_tables(const std::vector<ResultTable>& tables) {
  std::string text;
  for (const ResultTable& table : tables) {
    if (!text.empty()) text += "\n";
    text += fmt::format("{} ({}){}\n", table.title, table.unit,
                        table.bar ? fmt::format(", bar {:.0f} %", 100 * *table.bar) : "");
    std::size_t width = 0;
    for (const ResultRow& row : table.rows) width = std::max(width, row.name.size());
    text +=
        fmt::format("  {:<{}} {:>10} {:>10} {:>8}\n", "", width, "published", "simulated", "error");
    for (const ResultRow& row : table.rows) {
      std::string line = fmt::format("  {:<{}} {:>10} {:>10} {:>+7.1f}%  {}", row.name, width,
                                     print_number(row.published), print_number(row.simulated),
                                     100 * row.error(), describe_row(row, table.bar));
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  return text;
}

std::string tables_json(const std::vector<ResultTable>& tables) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const ResultTable& table : tables) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const ResultRow& row : table.rows) {
      nlohmann::ordered_json json = {{"name", row.name},
                                     {"published", round_to_micro(row.published)},
                                     {"simulated", round_to_micro(row.simulated)},
                                     {"error", round_to_micro(row.error())},
                                     {"role", role_name(row.role)}};
      if (table.bar) json["meets_bar"] = meets_bar(row, *table.bar);
      if (!row.reason.empty()) json["reason"] = row.reason;
      rows.push_back(json);
    }
    nlohmann::ordered_json json = {{"title", table.title}, {"unit", table.unit}};
    if (table.bar) json["bar"] = *table.bar;
    json["rows"] = rows;
    all.push_back(json);
  }
  return all.dump();
}

}  // namespace frazil
