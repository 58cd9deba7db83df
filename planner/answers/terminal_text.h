#pragma once
// Shows an answer on a terminal: rows of tables that are wider than the terminal lose the blanks
// between their columns, then the middle of their longest texts, then their end; sentences go on in
// a further line; marks get colours. Answers that go to a file or a pipe are never changed.

#include <string>
#include <string_view>

namespace frazil {

struct Terminal {
  int columns = 0;  // 0: any width
  bool colours = false;
};

// Returns what standard output is connected to: none of the two for a file or a pipe. Colours are
// used unless the environment variable NO_COLOR is set to a text (https://no-color.org) or TERM is
// "dumb".
Terminal find_terminal();

// Returns `text` as it is shown on the terminal. Consecutive lines with two blanks between words
// are the rows of a table as long as their columns lie below each other. A row that is too wide
// ends in "…", but goes on in a further line if its last column is a sentence. Every character
// counts as one column.
std::string show_on(const Terminal& terminal, std::string_view text);

}  // namespace frazil
