#pragma once
// Events of a run whose costs drift, and of devices that its plans stop and begin to use. They are
// extensions of the freeze trace (freeze_trace.h), kinds "x-drift" and "x-devices":
// clang-format off
//   {"step":150,"kind":"x-drift","event":"replanned","by":"search","steps":50,
//    "held_step_ns":0,"best_step_ns":0,"transition_ns":0,"excluded_windows":0,
//    "devices_ppm":[1000000,1300000],"layers_ppm":[1000000,1000000],
//    "reason":"device 1 takes 1.30 x","note":".."}                                    (on one line)
//   {"step":0,"kind":"x-devices","event":"released","device_ids":[1]}
// clang-format on

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"

namespace frazil {

class JsonFields;

// What a run has done about a drift.
enum class DriftChange {
  kReplanned,  // it goes on under another plan
  kDeclined,   // no other plan pays in the steps to come
};
std::string_view name_of(DriftChange change);  // "replanned"

struct DriftEvent {
  DriftChange change = DriftChange::kDeclined;
  std::string by = {};        // who proposed the best other plan; empty: there is none
  std::int64_t steps = 0;     // to come, as far as the masks are known
  Duration held_step{0};      // of the plan in force, at the measured costs
  Duration best_step{0};      // of the best other plan; 0: there is none
  Duration transition{0};     // to it
  std::int64_t excluded = 0;  // windows beside foreign load, so far in the run
  // What devices and layers have been found to take, beside cluster and profile, in millionths.
  std::vector<std::int64_t> devices_ppm = {};
  std::vector<std::int64_t> layers_ppm = {};
  std::string reason = {};  // "device 1 takes 1.30 x"
  std::string note = {};    // the figures of all proposals, in a clause
  friend bool operator==(const DriftEvent&, const DriftEvent&) = default;
};

enum class DevicesChange {
  kReleased,   // the plan that begins has nothing for them, and the one before had
  kAskedBack,  // the plan that begins has work for them, and the one before had none
};
std::string_view name_of(DevicesChange change);  // "released", "asked_back"

struct DevicesEvent {
  DevicesChange change = DevicesChange::kReleased;
  std::vector<DeviceId> devices = {};  // ascending
  friend bool operator==(const DevicesEvent&, const DevicesEvent&) = default;
};

inline constexpr std::string_view kDriftKind = "x-drift";
inline constexpr std::string_view kDevicesKind = "x-devices";

// Read and write the members of an event behind its step. Reading throws InputError for a missing
// key or a value of another kind; counts and times below 0 are bugs (std::logic_error) in writing.
DriftEvent read_drift(JsonFields& fields);
DevicesEvent read_devices(JsonFields& fields);
std::string members_of(const DriftEvent& event);
std::string members_of(const DevicesEvent& event);

}  // namespace frazil
