#pragma once
// Fits the rows of a table to the width of a terminal: first the blanks between its columns go,
// then the middle of its longest texts.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

using Lines = std::vector<std::string>;

inline constexpr std::string_view kCut = "…";  // stands for what is left out

// Returns how many characters a line has; each counts as one column.
std::size_t width_of(std::string_view line);
// Splits a line into its characters, so that a column is an index.
Lines characters_of(std::string_view line);
// True if two blanks stand between words of the line: it has columns.
bool has_columns(std::string_view line);
// True if the last column holds a sentence, which is to be read to its end.
bool ends_in_sentence(std::string_view line);

// Rows that stand below each other, by character, and the columns that are blank in all of them.
class Table {
 public:
  // Takes the line if it is a row through which at least half of the gaps go that go through all
  // rows so far, or if its last column begins where that of the row above does. The first two lines
  // need only be rows, for a head has gaps of its own.
  bool takes(const std::string& line);

  // Returns the rows without the blank columns that follow a blank one and, where that is not
  // enough and no row goes on in a further line, with "…" in the middle of texts: the column of the
  // longest ones is made narrower first, down to 12 characters. Columns of figures are kept, and
  // what is too wide then stays so. A drawn line keeps all.
  Lines fitted(std::size_t columns) const;

 private:
  struct Column {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool is_text = false;   // holds words, not figures
    std::size_t width = 0;  // that it gets
  };

  bool begins_column(const Lines& row) const;
  std::vector<bool> blank_with(const Lines& row) const;
  Lines squeezed() const;
  std::vector<Column> list_columns() const;
  bool is_headed(const Column& column) const;
  bool is_full(const Column& column) const;
  bool has_text(const Column& column) const;

  std::vector<Lines> rows_;
  std::vector<bool> blank_;
  std::size_t last_column_ = 0;  // of the last row with columns
  bool is_drawn_ = false;
  bool goes_on_ = false;  // a row goes on in a further line, or ends in a sentence that may
};

}  // namespace frazil
