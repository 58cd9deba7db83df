#pragma once
// Checks tables of texts that a reader refuses: the whole of every sentence.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiles/error.h"

namespace frazil {

struct Refusal {
  std::string name;
  std::string text;
  int line;
  std::string found;
  std::string expected;
};

template <class Parse>
void expect_each_refused(const std::vector<Refusal>& refusals, Parse parse) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.name);
    try {
      parse(refusal.text, "bad file");
      ADD_FAILURE() << "taken";
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "bad file");
      EXPECT_EQ(error.line(), refusal.line);
      EXPECT_EQ(error.found(), refusal.found);
      EXPECT_EQ(error.expected(), refusal.expected);
    }
  }
}

// Returns `text` with its first `before` replaced by `after`.
inline std::string with(std::string text, const std::string& before, const std::string& after) {
  const std::size_t place = text.find(before);
  if (place == std::string::npos) {
    ADD_FAILURE() << "no " << before;
    return text;
  }
  return text.replace(place, before.size(), after);
}

}  // namespace frazil
