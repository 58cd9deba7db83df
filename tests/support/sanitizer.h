#pragma once
// Tells which sanitizer this program is built with (FRAZIL_SANITIZE of CMake), for a sanitizer
// makes a test slower by a factor of 3 to 20.

#include <sanitizer/common_interface_defs.h>

#include <string_view>

#ifndef FRAZIL_SANITIZE
#define FRAZIL_SANITIZE ""
#endif

#pragma weak __sanitizer_symbolize_pc  // absent without a sanitizer

namespace frazil {

inline constexpr std::string_view kSanitizer = FRAZIL_SANITIZE;

// Under the thread sanitizer a test that repeats itself for several values takes fewer of them.
inline constexpr bool kThreadsAreWatched = kSanitizer == "thread";

// Returns how many of `count` random cases a test draws, or should at least have found: all, or a
// quarter under a sanitizer.
constexpr int draws(int count) { return kSanitizer.empty() ? count : count / 4; }

// Makes a sanitizer look up a name, for which it starts a program and keeps two pipes to it. Who
// counts open files asks for that first: otherwise the first suppressed finding starts it.
inline void start_symbolizer() {
  char name[64];
  if (__sanitizer_symbolize_pc != nullptr) {
    __sanitizer_symbolize_pc(__builtin_return_address(0), "%f", name, sizeof name);
  }
}

}  // namespace frazil
