#pragma once
// A text file as numbered lines. A byte order mark and the \r of a line end belong to no line.

#include <optional>
#include <string>
#include <string_view>

namespace frazil {

struct FileLine {
  int number = 1;
  std::string_view text;  // points into the file's text
};

// Walks the lines that are not blank, one at a time: a list of them would be larger than a file of
// short lines. The text and the name of the file must outlive it.
class FileLines {
 public:
  FileLines(std::string_view text, const std::string& file);

  // Returns the next line; nothing after the last one. Throws InputError for a control character
  // that is no tab, for bytes that are not UTF-8, and for a file whose lines are all blank.
  std::optional<FileLine> next();

 private:
  std::string_view rest_;
  const std::string& file_;
  int lines_ = 0;  // read so far
  bool has_text_ = false;
};

std::string_view trim(std::string_view text);  // without blanks and tabs around it

// Quotes a piece of a file for a message: in backticks, cut after 40 bytes.
std::string quote(std::string_view text);

}  // namespace frazil
