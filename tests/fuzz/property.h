#pragma once
// Checks that all fuzzed readers share. A property that does not hold ends the program, so that
// libFuzzer keeps the input; a refusal must be one sentence about a line that exists.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "profiles/error.h"

namespace frazil {

inline constexpr const char* kFuzzedFile = "fuzzed.csv";

inline void require(bool holds, std::string_view property) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(property.size()), property.data());
  std::abort();
}

inline void require_sentence(const InputError& error, std::string_view text) {
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  const std::string_view sentence = error.what();
  require(error.file() == kFuzzedFile, "a refusal names the file");
  require(error.line() >= 0 && error.line() <= lines, "a refusal names a line of the file");
  require(!error.found().empty() && !error.expected().empty(), "a refusal says what it found");
  require(std::none_of(sentence.begin(), sentence.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
          "a refusal is one line");
}

}  // namespace frazil
