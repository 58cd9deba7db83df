#include "analysis/tables/time_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace frazil {
namespace {

std::string milliseconds_text(Duration time) { return fmt::format("{:.3f}", to_ms(time)); }

std::string percent_text(double share) { return fmt::format("{:.1f}", 100 * share); }

double share_of(Duration part, const TimeSplit& whole) {
  const Duration all = whole.total();
  if (all == Duration{0}) return 0;
  return static_cast<double>(part.count()) / static_cast<double>(all.count());
}

struct Side {
  std::string from;
  std::string word;
  const TimeSplit* split;
};

std::vector<Side> list_sides(const std::vector<PhaseTimes>& phases) {
  std::vector<Side> sides;
  for (const PhaseTimes& phase : phases) {
    sides.push_back({std::to_string(phase.first_step), "predicted", &phase.predicted});
    if (phase.measured) sides.push_back({"", "measured", &*phase.measured});
  }
  return sides;
}

}  // namespace

Table tabulate_times(const std::vector<PhaseTimes>& phases) {
  Table table{.header = {"from step", "step", "ms"}, .rows = {}};
  const std::vector<Side> sides = list_sides(phases);
  for (const Side& side : sides) {
    table.rows.push_back({side.from, side.word, milliseconds_text(side.split->total())});
  }
  for (const std::string_view title : list_titles()) {
    const bool is_told = std::any_of(sides.begin(), sides.end(), [&](const Side& side) {
      return part_of(*side.split, title) != Duration{0};
    });
    if (!is_told) continue;
    table.header.emplace_back(title);
    for (std::size_t i = 0; i < sides.size(); ++i) {
      table.rows[i].push_back(milliseconds_text(part_of(*sides[i].split, title)));
    }
  }
  table.header.emplace_back("bubble %");
  for (std::size_t i = 0; i < sides.size(); ++i) {
    table.rows[i].push_back(percent_text(sides[i].split->bubble()));
  }
  return table;
}

Table tabulate_parts(const PhaseTimes& phase) {
  Table table{.header = {"part of a step", "predicted ms", "measured ms", "difference ms",
                         "predicted %", "measured %"},
              .rows = {}};
  const auto add = [&](std::string_view title, Duration predicted, Duration measured) {
    const bool both = phase.measured.has_value();
    table.rows.push_back({std::string(title), milliseconds_text(predicted),
                          both ? milliseconds_text(measured) : "–",
                          both ? fmt::format("{:+.3f}", to_ms(measured - predicted)) : "–",
                          percent_text(share_of(predicted, phase.predicted)),
                          both ? percent_text(share_of(measured, *phase.measured)) : "–"});
  };
  const TimeSplit none;
  const TimeSplit& measured = phase.measured ? *phase.measured : none;
  for (const std::string_view title : list_titles()) {
    const Duration one = part_of(phase.predicted, title);
    const Duration other = part_of(measured, title);
    if (one != Duration{0} || other != Duration{0}) add(title, one, other);
  }
  add("bubble: all but compute", phase.predicted.total() - phase.predicted.parts.compute,
      measured.total() - measured.parts.compute);
  add("whole step", phase.predicted.total(), measured.total());
  return table;
}

std::string_view explain_parts() {
  return "exposed comm: from the end of the work that makes a message until it is there; wait "
         "upstream, downstream: until the stage before, the stage behind has done that work; "
         "update: "
         "before the update, for the reduction of gradients; fill, drain: before the first work of "
         "a "
         "device and after its last; between actions: of the executor itself, with no message to "
         "wait "
         "for.";
}

}  // namespace frazil
