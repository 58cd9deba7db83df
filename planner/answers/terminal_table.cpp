#include "planner/answers/terminal_table.h"

#include <algorithm>
#include <cctype>

namespace frazil {
namespace {

constexpr std::size_t kShortestText = 12;  // a column of texts is made no narrower

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; }

// A row of a drawn time line, "d0 |0aa1b |", in which every blank is time.
bool is_drawn(std::string_view line) { return line.ends_with('|'); }

bool goes_on(std::string_view line) { return line.starts_with("    "); }

// True for a row of a table, also for one that goes on with the last columns of the row above.
bool is_row(std::string_view line) { return has_columns(line) || is_drawn(line) || goes_on(line); }

bool is_spare(const std::vector<bool>& blank, std::size_t column) {
  return column > 0 && blank[column] && blank[column - 1];
}

// Counts the runs of blank columns.
std::size_t count_gaps(const std::vector<bool>& blank) {
  std::size_t gaps = 0;
  for (std::size_t column = 0; column < blank.size(); ++column) {
    gaps += blank[column] && !is_spare(blank, column) ? 1 : 0;
  }
  return gaps;
}

// Returns the first byte of a cell; a blank for none.
char first_of_cell(const Lines& row, std::size_t begin, std::size_t end) {
  while (begin < std::min(end, row.size()) && row[begin] == " ") ++begin;
  return begin < std::min(end, row.size()) ? row[begin].front() : ' ';
}

std::string join(Lines::const_iterator begin, Lines::const_iterator end) {
  std::string text;
  for (; begin != end; ++begin) text += *begin;
  return text;
}

// Returns the cell in so many characters, on the side where it stood; the middle of a longer one
// goes, for names differ at their ends.
std::string fit_cell(const Lines& row, std::size_t begin, std::size_t end, std::size_t width) {
  const auto at = [&](std::size_t i) {
    return row.begin() + static_cast<std::ptrdiff_t>(std::min(i, row.size()));
  };
  const auto is_ink = [](const std::string& character) { return character != " "; };
  const auto first = std::find_if(at(begin), at(end), is_ink);
  auto last = at(end);
  while (last != first && !is_ink(*(last - 1))) --last;
  const auto size = static_cast<std::size_t>(last - first);
  if (size <= width) {
    const std::string margin(width - size, ' ');
    const bool is_right = first != at(begin) && last == at(end);
    return is_right ? margin + join(first, last) : join(first, last) + margin;
  }
  const auto head = static_cast<std::ptrdiff_t>(width / 2);
  const auto tail = static_cast<std::ptrdiff_t>(width - width / 2 - 1);
  return join(first, first + head) + std::string(kCut) + join(last - tail, last);
}

}  // namespace

std::size_t width_of(std::string_view line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), starts_character));
}

Lines characters_of(std::string_view line) {
  Lines characters;
  for (const char byte : line) {
    if (starts_character(byte) || characters.empty()) characters.emplace_back();
    characters.back() += byte;
  }
  return characters;
}

bool has_columns(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  return line.substr(begin).find("  ") != std::string_view::npos;
}

bool ends_in_sentence(std::string_view line) {
  constexpr std::ptrdiff_t kBlanksOfASentence = 4;
  const std::size_t gap = line.rfind("  ");
  const std::string_view last = gap == std::string_view::npos ? line : line.substr(gap + 2);
  return std::count(last.begin(), last.end(), ' ') >= kBlanksOfASentence;
}

bool Table::takes(const std::string& line) {
  Lines row = characters_of(line);
  std::vector<bool> blank = blank_with(row);
  if (rows_.empty()) is_drawn_ = is_drawn(line);
  const bool fits = is_row(line) ? rows_.size() < 2 || count_gaps(blank) * 2 >= count_gaps(blank_)
                                 : begins_column(row);
  if (is_drawn(line) != is_drawn_ || !fits) return false;
  blank_ = std::move(blank);
  if (is_row(line)) last_column_ = width_of(line.substr(0, line.rfind("  ") + 2));
  goes_on_ = goes_on_ || !has_columns(line) || ends_in_sentence(line);
  rows_.push_back(std::move(row));
  return true;
}

Lines Table::squeezed() const {
  Lines lines(rows_.size());
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t column = 0; column < rows_[r].size(); ++column) {
      if (is_drawn_ || !is_spare(blank_, column)) lines[r] += rows_[r][column];
    }
  }
  return lines;
}

bool Table::begins_column(const Lines& row) const {
  return !rows_.empty() && last_column_ > 0 && last_column_ < row.size() &&
         row[last_column_ - 1] == " " && row[last_column_] != " ";
}

std::vector<bool> Table::blank_with(const Lines& row) const {
  std::vector<bool> blank = blank_;
  blank.resize(std::max(blank.size(), row.size()), true);
  for (std::size_t column = 0; column < row.size(); ++column) {
    if (row[column] != " ") blank[column] = false;
  }
  return blank;
}

// True if the head has a cell there. Blanks inside the longest texts alone, beyond the ends of all
// others, begin no column.
bool Table::is_headed(const Column& column) const {
  return first_of_cell(rows_.front(), column.begin, column.end) != ' ';
}

// True if every row below the head has a cell there.
bool Table::is_full(const Column& column) const {
  return std::all_of(rows_.begin() + 1, rows_.end(), [&](const Lines& row) {
    return first_of_cell(row, column.begin, column.end) != ' ';
  });
}

// True if a row below the head has a cell there that begins with a letter.
bool Table::has_text(const Column& column) const {
  return std::any_of(rows_.begin() + 1, rows_.end(), [&](const Lines& row) {
    return std::isalpha(static_cast<unsigned char>(first_of_cell(row, column.begin, column.end))) !=
           0;
  });
}

std::vector<Table::Column> Table::list_columns() const {
  std::vector<Column> runs;  // without a blank column
  for (std::size_t i = 0; i < blank_.size(); ++i) {
    if (blank_[i]) continue;
    if (i == 0 || blank_[i - 1]) runs.push_back({.begin = i});
    runs.back().end = i + 1;
  }
  std::vector<Column> columns;
  for (const Column& run : runs) {
    if (!columns.empty() && !is_headed(run) && !is_full(run)) {
      columns.back().end = run.end;
    } else {
      columns.push_back(run);
    }
  }
  for (Column& column : columns) {
    column.is_text = has_text(column);
    column.width = column.end - column.begin;
  }
  return columns;
}

Lines Table::fitted(std::size_t columns) const {
  std::vector<Column> cells = list_columns();
  std::size_t width = cells.empty() ? 0 : cells.size() - 1;
  for (const Column& cell : cells) width += cell.width;
  if (is_drawn_ || goes_on_ || width <= columns) return squeezed();
  for (; width > columns; --width) {
    const auto widest =
        std::max_element(cells.begin(), cells.end(), [](const Column& left, const Column& right) {
          return left.width * (left.is_text ? 1 : 0) < right.width * (right.is_text ? 1 : 0);
        });
    if (!widest->is_text || widest->width <= kShortestText) break;
    --widest->width;
  }
  Lines lines(rows_.size());
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (const Column& cell : cells) {
      lines[r] +=
          (&cell == cells.data() ? "" : " ") + fit_cell(rows_[r], cell.begin, cell.end, cell.width);
    }
    lines[r].erase(lines[r].find_last_not_of(' ') + 1);
  }
  return lines;
}

}  // namespace frazil
