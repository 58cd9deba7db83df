#include "analysis/html/html_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "analysis/foreign_cores.h"
#include "analysis/html/html_parts.h"

namespace frazil {
namespace {

std::optional<double> percent(std::optional<double> share) {
  if (share) *share *= 100;
  return share;
}

// Writes whole times of a run, everywhere with the same digits.
std::string seconds_text(Duration duration) {
  return number_text(static_cast<double>(duration.count()) / 1e9, 3);
}

bool is_timed(std::string_view label) { return label != "accuracy"; }

// Names the runs during which other programs kept the machine busy, for the tile of a time; returns
// "" if there are none.
std::string warn_of_load(const std::vector<RunSummary>& runs) {
  std::string names;
  for (const RunSummary& run : runs) {
    if (tell_foreign_cores(run.foreign_cores).empty()) continue;
    names += (names.empty() ? "" : ", ") + run.name;
  }
  return names.empty() ? "" : "busy machine: " + names;
}

std::vector<Tile> make_tiles(const std::vector<RunSummary>& runs) {
  using Show = std::function<std::string(const RunSummary&)>;
  const std::vector<std::pair<std::string, Show>> shown = {
      {"time", [](const RunSummary& run) { return seconds_text(run.total()) + " s"; }},
      {"samples per second", [](const RunSummary& run) { return rate_text(run.rate()); }},
      {"accuracy",
       [](const RunSummary& run) {
         if (!run.last_eval || !run.last_eval->accuracy) return std::string("–");
         return number_text(100 * *run.last_eval->accuracy, 2) + " %";
       }},
      {"prediction off by", [](const RunSummary& run) {
         const std::string text = number_text(percent(run.prediction_error()), 1);
         return text == "–" ? text : text + " %";
       }}};
  std::vector<Tile> tiles;
  for (const auto& [label, show] : shown) {
    Tile tile{.label = runs.front().name + ": " + label, .value = show(runs.front()), .remark = ""};
    for (std::size_t i = 1; i < runs.size(); ++i) {
      tile.remark += (i > 1 ? ", " : "") + runs[i].name + ": " + show(runs[i]);
    }
    if (is_timed(label)) tile.warning = warn_of_load(runs);
    tiles.push_back(tile);
  }
  return tiles;
}

void add_score(const std::optional<PartScore>& score, std::vector<std::string>& row) {
  std::optional<double> loss;
  std::optional<double> accuracy;
  if (score) {
    loss = score->loss;
    if (score->accuracy) accuracy = 100 * *score->accuracy;
  }
  row.push_back(number_text(loss, 4));
  row.push_back(number_text(accuracy, 2));
}

std::optional<PartScore> test_score(const RunSummary& run) {
  if (!run.last_eval) return std::nullopt;
  return PartScore{run.last_eval->loss, run.last_eval->accuracy};
}

std::optional<PartScore> validation_score(const RunSummary& run) {
  if (!run.last_eval) return std::nullopt;
  return run.last_eval->validation;
}

Table tabulate(const std::vector<RunSummary>& runs) {
  Table table{.header = {"run", "steps", "samples", "training s", "transitions s", "total s",
                         "samples/s", "loss", "accuracy %"},
              .rows = {}};
  const bool validates = std::any_of(runs.begin(), runs.end(), [](const RunSummary& run) {
    return validation_score(run).has_value();
  });
  if (validates) {
    table.header.insert(table.header.end(), {"validation loss", "validation accuracy %"});
  }
  const bool knows_load = std::any_of(runs.begin(), runs.end(), [](const RunSummary& run) {
    return run.foreign_cores.has_value();
  });
  if (knows_load) table.header.push_back("other programs, cores");
  if (runs.size() > 1) table.header.push_back("speed");
  const std::optional<double> base = runs.back().rate();
  for (const RunSummary& run : runs) {
    std::vector<std::string> row{run.name,
                                 count_text(run.steps),
                                 count_text(run.samples),
                                 seconds_text(run.training),
                                 seconds_text(run.transitions),
                                 seconds_text(run.total()),
                                 rate_text(run.rate())};
    add_score(test_score(run), row);
    if (validates) add_score(validation_score(run), row);
    if (knows_load) row.push_back(number_text(run.foreign_cores, 2));
    if (runs.size() > 1) {
      row.push_back(run.rate() && base ? fmt::format("{:.2f}x", *run.rate() / *base) : "–");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string draw_tiles(const std::vector<RunSummary>& runs) { return html_tiles(make_tiles(runs)); }

std::string draw_totals(const std::vector<RunSummary>& runs) {
  std::string markup = html_table(tabulate(runs));
  for (const RunSummary& run : runs) {
    if (run.unmeasured_steps == 0) continue;
    markup += html_paragraph("remark", fmt::format("{}: {}.", run.name, tell_unmeasured(run)));
  }
  if (runs.size() > 1) {
    markup += html_paragraph(
        "remark",
        fmt::format("Speed: samples per second of the total time, {} = 1.", runs.back().name));
  }
  return markup;
}

}  // namespace frazil
