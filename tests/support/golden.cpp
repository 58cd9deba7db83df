#include "tests/support/golden.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "profiles/text_file.h"

namespace frazil {

::testing::AssertionResult matches_golden(const std::string& name, const std::string& actual) {
  const std::filesystem::path path = std::filesystem::path(FRAZIL_GOLDEN_FOLDER) / name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    write_text_file(path, actual);
    return ::testing::AssertionSuccess();
  }
  if (!std::filesystem::exists(path)) {
    return ::testing::AssertionFailure()
           << "no golden " << name << "; UPDATE_GOLDEN=1 writes it. Actual:\n"
           << actual;
  }
  const std::string expected = read_text_file(path);
  if (expected == actual) return ::testing::AssertionSuccess();
  std::istringstream expected_lines(expected);
  std::istringstream actual_lines(actual);
  std::string expected_line;
  std::string actual_line;
  for (int line = 1;; ++line) {
    const bool more_expected = static_cast<bool>(std::getline(expected_lines, expected_line));
    const bool more_actual = static_cast<bool>(std::getline(actual_lines, actual_line));
    if (more_expected == more_actual && expected_line == actual_line && more_expected) continue;
    return ::testing::AssertionFailure()
           << name << ":" << line << ": golden \"" << (more_expected ? expected_line : "<end>")
           << "\", actual \"" << (more_actual ? actual_line : "<end>") << "\"";
  }
}

}  // namespace frazil
