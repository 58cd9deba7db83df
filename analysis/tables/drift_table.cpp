#include "analysis/tables/drift_table.h"

#include <fmt/format.h>

namespace frazil {
namespace {

std::string time_or_dash(Duration time) {
  return time == Duration{0} ? "-" : fmt::format("{:.3f}", to_ms(time));
}

std::string change_text(const DriftEvent& drift) {
  std::string text(name_of(drift.change));
  if (!drift.by.empty()) text += ", " + drift.by;
  return text;
}

std::string list_devices(const std::vector<DeviceId>& devices) {
  std::string text;
  for (const DeviceId device : devices) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", device.value);
  }
  return (devices.size() == 1 ? "device " : "devices ") + text;
}

}  // namespace

Table tabulate_drift(const FreezeTrace& trace) {
  Table table{.header = {"before step", "why", "decided", "steps to come", "held step ms",
                         "best step ms", "transition ms", "figures"},
              .rows = {}};
  for (const FreezeEvent& event : trace.events) {
    if (const auto* drift = std::get_if<DriftEvent>(&event.what)) {
      std::string note = drift->note;
      if (drift->excluded > 0) {
        note += fmt::format("; {} windows beside foreign load left out", drift->excluded);
      }
      table.rows.push_back({std::to_string(event.step), "drift: " + drift->reason,
                            change_text(*drift), std::to_string(drift->steps),
                            time_or_dash(drift->held_step), time_or_dash(drift->best_step),
                            time_or_dash(drift->transition), std::move(note)});
    } else if (const auto* devices = std::get_if<DevicesEvent>(&event.what)) {
      const bool is_released = devices->change == DevicesChange::kReleased;
      table.rows.push_back(
          {std::to_string(event.step), "packing",
           list_devices(devices->devices) + (is_released ? " released" : " asked back"), "-", "-",
           "-", "-", ""});
    }
  }
  return table;
}

}  // namespace frazil
