#include "traces/drift_event.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr std::int64_t kMostOfEvent = std::numeric_limits<std::int64_t>::max();
// The names by enumerator.
constexpr std::array<std::string_view, 2> kDriftChanges{"replanned", "declined"};
constexpr std::array<std::string_view, 2> kDevicesChanges{"released", "asked_back"};

template <std::size_t N>
std::size_t read_change(JsonFields& fields, const std::array<std::string_view, N>& names) {
  const JsonCursor change = fields.required("event");
  const auto* const name = std::find(names.begin(), names.end(), std::string_view(change.text()));
  if (name == names.end()) {
    change.fail(change.describe(), fmt::format("{}", fmt::join(names, " or ")));
  }
  return static_cast<std::size_t>(name - names.begin());
}

std::int64_t read_count(JsonFields& fields, const char* key) {
  return fields.required(key).integer(0, kMostOfEvent);
}

std::vector<std::int64_t> read_counts(JsonFields& fields, const char* key) {
  std::vector<std::int64_t> counts;
  for (const JsonCursor& item : fields.required(key).items()) {
    counts.push_back(item.integer(0, kMostOfEvent));
  }
  return counts;
}

}  // namespace

std::string_view name_of(DriftChange change) {
  return kDriftChanges.at(static_cast<std::size_t>(change));
}

std::string_view name_of(DevicesChange change) {
  return kDevicesChanges.at(static_cast<std::size_t>(change));
}

DriftEvent read_drift(JsonFields& fields) {
  DriftEvent event;
  event.change = static_cast<DriftChange>(read_change(fields, kDriftChanges));
  event.by = fields.required("by").text();
  event.steps = read_count(fields, "steps");
  event.held_step = Duration{read_count(fields, "held_step_ns")};
  event.best_step = Duration{read_count(fields, "best_step_ns")};
  event.transition = Duration{read_count(fields, "transition_ns")};
  event.excluded = read_count(fields, "excluded_windows");
  event.devices_ppm = read_counts(fields, "devices_ppm");
  event.layers_ppm = read_counts(fields, "layers_ppm");
  event.reason = fields.required("reason").text();
  event.note = fields.required("note").text();
  return event;
}

DevicesEvent read_devices(JsonFields& fields) {
  DevicesEvent event;
  event.change = static_cast<DevicesChange>(read_change(fields, kDevicesChanges));
  for (const JsonCursor& item : fields.required("device_ids").items()) {
    event.devices.emplace_back(
        static_cast<std::int32_t>(item.integer(0, std::numeric_limits<std::int32_t>::max())));
  }
  return event;
}

std::string members_of(const DriftEvent& event) {
  ENSURE(event.steps >= 0 && event.excluded >= 0 && event.held_step >= kNoTime &&
             event.best_step >= kNoTime && event.transition >= kNoTime,
         "times and counts of a drift are at least 0");
  return fmt::format(
      R"("kind":"{}","event":"{}","by":{},"steps":{},"held_step_ns":{},"best_step_ns":{},)"
      R"("transition_ns":{},"excluded_windows":{},"devices_ppm":[{}],"layers_ppm":[{}],)"
      R"("reason":{},"note":{})",
      kDriftKind, name_of(event.change), json_string(event.by), event.steps,
      event.held_step.count(), event.best_step.count(), event.transition.count(), event.excluded,
      fmt::join(event.devices_ppm, ","), fmt::join(event.layers_ppm, ","),
      json_string(event.reason), json_string(event.note));
}

std::string members_of(const DevicesEvent& event) {
  std::vector<std::int32_t> ids;
  for (const DeviceId device : event.devices) ids.push_back(device.value);
  return fmt::format(R"("kind":"{}","event":"{}","device_ids":[{}])", kDevicesKind,
                     name_of(event.change), fmt::join(ids, ","));
}

}  // namespace frazil
