#include "analysis/html/html_decisions.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/html/html_parts.h"
#include "analysis/tables/cache_table.h"
#include "analysis/tables/drift_table.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

std::string ms_text(Duration duration) { return number_text(to_ms(duration), 3); }

bool has_prediction(const FreezeEvent& event) {
  const auto* transition = std::get_if<TransitionEvent>(&event.what);
  return transition != nullptr && transition->predicted;
}

}  // namespace

std::string draw_decisions(const FreezeTrace& trace) {
  Table table{.header = {"before step", "mask", "decided by", "why"}, .rows = {}};
  const FreezeMask* held = nullptr;
  for (const FreezeEvent& event : trace.events) {
    const auto* mask = std::get_if<MaskEvent>(&event.what);
    if (mask == nullptr) continue;
    const bool changes = held == nullptr || *held != mask->mask;
    held = &mask->mask;
    if (!changes || mask->by.empty()) continue;
    table.rows.push_back({count_text(event.step), mask->mask.text(), mask->by, mask->reason});
  }
  if (table.rows.empty()) return "";
  return "<h3>Freezing</h3>\n" +
         html_details(fmt::format("Decisions ({})", table.rows.size()), table);
}

std::string draw_transitions(const FreezeTrace& trace) {
  Table table{.header = {"before step", "planning ms", "moving state ms", "starting ms", "moved"},
              .rows = {}};
  const bool predicts = std::any_of(trace.events.begin(), trace.events.end(), has_prediction);
  if (predicts) {
    for (const char* const part : {"planning", "moving", "starting"}) {
      table.header.push_back(fmt::format("{} predicted ms", part));
    }
  }
  for (const FreezeEvent& event : trace.events) {
    const auto* part = std::get_if<TransitionEvent>(&event.what);
    if (part == nullptr) continue;
    std::vector<std::string> row{count_text(event.step), ms_text(part->plan_time),
                                 ms_text(part->move_time), ms_text(part->start_time),
                                 to_text(part->moved)};
    if (part->predicted) {
      const TransitionTimes& times = *part->predicted;
      for (const Duration time : {times.plan, times.move, times.start}) {
        row.push_back(ms_text(time));
      }
    } else if (predicts) {
      row.insert(row.end(), 3, number_text(std::nullopt, 3));
    }
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) return "";
  return "<h3>Transitions</h3>\n" + html_table(table);
}

std::string draw_cache(const FreezeTrace& trace) {
  const Table table = tabulate_cache(trace);
  return table.rows.empty() ? "" : "<h3>Cache of the frozen prefix</h3>\n" + html_table(table);
}

std::string draw_drift(const FreezeTrace& trace) {
  const Table table = tabulate_drift(trace);
  return table.rows.empty() ? "" : "<h3>Drift and packing</h3>\n" + html_table(table);
}

}  // namespace frazil
