#pragma once
// The names that reading and writing a freeze trace share.

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

#include "traces/freeze_trace.h"

namespace frazil {

inline constexpr const char* kFreezeTraceFormat = "frazil.freeze_trace";
inline constexpr int kFreezeTraceVersion = 1;
inline constexpr std::string_view kCacheKind = "x-cache";
// The name of each CacheChange, by enumerator.
inline constexpr std::array<std::string_view, 7> kCacheChanges{
    "declined", "begun", "filled", "full", "left", "checked", "read"};

inline constexpr std::string_view kMembersKind = "x-members";
// Says whether a kind is an extension that is kept.
inline bool is_known_extension(std::string_view kind) {
  return kind == kCacheKind || kind == kMembersKind || kind == kDriftKind || kind == kDevicesKind;
}
// The name of each MembersChange, by enumerator.
inline constexpr std::array<std::string_view, 5> kMembersChanges{"lost", "recovered", "came",
                                                                 "suspected", "heard"};

// Says whether the header's "events" counts `event`. Extensions "x-..." are not counted, since
// readers that do not know their kind skip them.
inline bool is_counted(const FreezeEvent& event) {
  return !std::holds_alternative<CacheEvent>(event.what) &&
         !std::holds_alternative<MembersEvent>(event.what) &&
         !std::holds_alternative<DriftEvent>(event.what) &&
         !std::holds_alternative<DevicesEvent>(event.what);
}

inline std::int64_t count_events(const FreezeTrace& trace) {
  return std::count_if(trace.events.begin(), trace.events.end(), is_counted);
}

}  // namespace frazil
