#pragma once
// What reading and writing a freeze trace have in common.

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

#include "traces/freeze_trace.h"

namespace frazil {

inline constexpr const char* kFreezeTraceFormat = "frazil.freeze_trace";
inline constexpr int kFreezeTraceVersion = 1;
inline constexpr std::string_view kCacheKind = "x-cache";
// By enumerator.
inline constexpr std::array<std::string_view, 7> kCacheChanges{
    "declined", "begun", "filled", "full", "left", "checked", "read"};

// By the header. Readers that do not know a kind "x-..." pass by it.
inline bool is_counted(const FreezeEvent& event) {
  return !std::holds_alternative<CacheEvent>(event.what);
}

inline std::int64_t count_events(const FreezeTrace& trace) {
  return std::count_if(trace.events.begin(), trace.events.end(), is_counted);
}

}  // namespace frazil
