#pragma once
// Lays out plain text tables for people: columns as wide as their widest cell, numbers right, words
// left.

#include <string>
#include <vector>

#include "analysis/compare.h"

namespace frazil {

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // each as long as the header
};

// True if the cell begins with a digit, '-' or '+' and has no space inside ("12", "-0.5", "1.3x",
// "-").
bool is_number(const std::string& cell);

// Returns the table as text. Numbers are set right, and so is the header of a column of numbers.
// Widths count code points of UTF-8; the text ends with a newline.
std::string to_text(const Table& table);

// Returns the comparison as a table: stage, action, count, predicted, measured, ratio; then the
// step.
std::string to_text(const Comparison& comparison);

}  // namespace frazil
