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

// The lines that are not blank. Throws InputError for a control character that is no tab, for what
// is not UTF-8 and for a file without such a line.
std::vector<FileLine> read_lines(std::string_view text, const std::string& file);

std::string_view trim(std::string_view text);  // without blanks and tabs around it

// A piece of a file for a message, in backticks and not too long.
std::string quote(std::string_view text);

}  // namespace frazil
