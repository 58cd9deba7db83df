#pragma once
// A text file as numbered lines. A byte order mark and the \r of a line end belong to no line.

#include <string>
#include <string_view>
#include <vector>

namespace frazil {

struct FileLine {
  int number = 1;
  std::string_view text;  // points into the file's text
};

// Returns the lines that are not blank. Throws InputError for a control character that is no tab,
// for bytes that are not UTF-8, and for a file whose lines are all blank.
std::vector<FileLine> read_lines(std::string_view text, const std::string& file);

std::string_view trim(std::string_view text);  // without blanks and tabs around it

// Quotes a piece of a file for a message: in backticks, cut after 40 bytes.
std::string quote(std::string_view text);

}  // namespace frazil
