#pragma once
// Published and simulated side by side: rows for people and for programs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace frazil {

enum class RowRole : std::uint8_t {
  kPrediction,
  kCalibration,  // a constant was taken from it, so it proves nothing
  kUpperBound,   // published under conditions that only bound what is simulated
};

struct ResultRow {
  std::string name;
  double published = 0;  // a range is its middle
  double simulated = 0;
  RowRole role = RowRole::kPrediction;
  std::string reason = "";  // why it is off, one sentence

  double error() const { return simulated / published - 1; }
};

struct ResultTable {
  std::string title;
  std::string unit;  // of both columns
  std::vector<ResultRow> rows = {};
  std::optional<double> bar = std::nullopt;  // largest |error| that was asked for
};

// Within the bar; of an upper bound: not above what was published.
bool meets_bar(const ResultRow& row, double bar);

std::string print_tables(const std::vector<ResultTable>& tables);
// [{"title", "unit", "bar", "rows": [{"name", "published", "simulated", "error", "role",
// "meets_bar", "reason"}]}]; "bar", "meets_bar" and "reason" only where there is one.
std::string tables_json(const std::vector<ResultTable>& tables);

}  // namespace frazil
