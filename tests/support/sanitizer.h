#pragma once
// Tells which sanitizer this program is built with (FRAZIL_SANITIZE of CMake), for a sanitizer
// makes a test slower by a factor of 3 to 20.

#include <string_view>

#ifndef FRAZIL_SANITIZE
#define FRAZIL_SANITIZE ""
#endif

namespace frazil {

inline constexpr std::string_view kSanitizer = FRAZIL_SANITIZE;

// Under the thread sanitizer a test that repeats itself for several values takes fewer of them.
inline constexpr bool kThreadsAreWatched = kSanitizer == "thread";

// Returns how many of `count` random cases a test draws, or should at least have found: all, or a
// quarter under a sanitizer.
constexpr int draws(int count) { return kSanitizer.empty() ? count : count / 4; }

}  // namespace frazil
