#pragma once
// Tables of published values beside simulated ones, printed for people and as JSON for programs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace frazil {

enum class RowRole : std::uint8_t {
  kPrediction,
  kCalibration,  // a constant was taken from this row, so the row proves nothing
  kUpperBound,   // published under conditions that only bound what is simulated
};

struct ResultRow {
  std::string name;
  double published = 0;  // the middle, where a range is published
  double simulated = 0;
  RowRole role = RowRole::kPrediction;
  std::string reason = "";  // why the values differ, one sentence

  double error() const { return simulated / published - 1; }
};

struct ResultTable {
  std::string title;
  std::string unit;  // of both columns
  std::vector<ResultRow> rows = {};
  std::optional<double> bar = std::nullopt;  // largest |error| that is accepted
};

// Tells whether the error is within the bar; for an upper bound, whether the simulated value is not
// above the published one.
bool meets_bar(const ResultRow& row, double bar);

std::string print_tables(const std::vector<ResultTable>& tables);
// Returns [{"title", "unit", "bar", "rows": [{"name", "published", "simulated", "error", "role",
// "meets_bar", "reason"}]}]; "bar" and "meets_bar" only where the table has a bar, "reason" only
// where the row has one.
std::string tables_json(const std::vector<ResultTable>& tables);

}  // namespace frazil
