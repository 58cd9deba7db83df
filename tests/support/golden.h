#pragma once
// Compares texts with golden files: tests/golden/<name> holds the expected text. UPDATE_GOLDEN=1
// rewrites it.

#include <gtest/gtest.h>

#include <string>

namespace frazil {

// Compares `actual` with tests/golden/<name>; a failure shows the first line that differs.
::testing::AssertionResult matches_golden(const std::string& name, const std::string& actual);

}  // namespace frazil
