#include "planner/answers/terminal_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

namespace frazil {
namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kNarrowest = 20;  // below that nothing is fitted
constexpr std::string_view kCut = "…";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kPlain = "\x1b[0m";

constexpr std::array kMarks = {
    std::pair{std::string_view("DOES NOT FIT"), kRed},
    std::pair{std::string_view("does not fit"), kRed},
    std::pair{std::string_view("excluded:"), kYellow},
    std::pair{std::string_view("note:"), kYellow},
};

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; }

std::size_t width_of(std::string_view line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), starts_character));
}

// Splits a line into its characters, so that a column is an index.
Lines characters_of(std::string_view line) {
  Lines characters;
  for (const char byte : line) {
    if (starts_character(byte) || characters.empty()) characters.emplace_back();
    characters.back() += byte;
  }
  return characters;
}

// True if two blanks stand between words of the line: it has columns.
bool has_columns(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  return line.substr(begin).find("  ") != std::string_view::npos;
}

bool is_table(const Lines& block) {
  return std::count_if(block.begin(), block.end(), has_columns) > 1;
}

// A row of a drawn time line, "d0 |0aa1b |", in which every blank is time.
bool is_drawn(std::string_view line) { return line.ends_with('|'); }

// Takes out the columns that are blank in all rows and follow another such column. A drawn line
// keeps all of its columns, and so does its block.
void squeeze(Lines& block) {
  if (std::any_of(block.begin(), block.end(), is_drawn)) return;
  std::vector<Lines> rows;
  std::size_t columns = 0;
  for (const std::string& line : block) {
    rows.push_back(characters_of(line));
    columns = std::max(columns, rows.back().size());
  }
  Lines squeezed(block.size());
  const auto is_blank = [&](std::size_t column) {
    return std::all_of(rows.begin(), rows.end(), [&](const Lines& row) {
      return column >= row.size() || row[column] == " ";
    });
  };
  bool follows_blank = false;
  for (std::size_t column = 0; column < columns; ++column) {
    const bool blank = is_blank(column);
    if (!blank || !follows_blank) {
      for (std::size_t r = 0; r < rows.size(); ++r) {
        if (column < rows[r].size()) squeezed[r] += rows[r][column];
      }
    }
    follows_blank = blank;
  }
  block = std::move(squeezed);
}

void cut(std::string& line, std::size_t columns) {
  if (width_of(line) <= columns) return;
  Lines characters = characters_of(line);
  characters.resize(columns - 1);
  line.clear();
  for (const std::string& character : characters) line += character;
  line += kCut;
}

// Goes on in further lines, which are indented by two. A word that is wider than the terminal stays
// whole, for it may be the name of a file.
std::string wrap(std::string_view line, std::size_t columns) {
  std::string text;
  std::size_t width = 0;
  while (!line.empty()) {
    const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t end = std::min(line.find(' ', blanks), line.size());
    const std::string_view word = line.substr(0, end);
    if (width > 0 && width + width_of(word) > columns) {
      text += "\n  ";
      text += word.substr(blanks);
      width = 2 + width_of(word) - blanks;
    } else {
      text += word;
      width += width_of(word);
    }
    line.remove_prefix(end);
  }
  return text;
}

std::string paint(std::string_view text, std::string_view colour) {
  return std::string(colour) + std::string(text) + std::string(kPlain);
}

std::string paint_marks(std::string line) {
  for (const auto& [mark, colour] : kMarks) {
    const std::size_t place = line.find(mark);
    if (place != std::string::npos) line.replace(place, mark.size(), paint(mark, colour));
  }
  return line;
}

// Fits a block into the columns, and paints it.
std::string show_block(Lines block, const Terminal& terminal) {
  const auto columns = static_cast<std::size_t>(std::max(terminal.columns, 0));
  const bool is_fitted = columns >= kNarrowest;
  const bool table = is_table(block);
  const auto is_wide = [&](const std::string& line) { return width_of(line) > columns; };
  if (is_fitted && table && std::any_of(block.begin(), block.end(), is_wide)) squeeze(block);
  std::string text;
  for (std::size_t i = 0; i < block.size(); ++i) {
    std::string line = std::move(block[i]);
    const bool is_row = table && (has_columns(line) || is_drawn(line));
    if (is_fitted && is_row) cut(line, columns);
    if (is_fitted && !is_row) line = wrap(line, columns);
    const bool is_head = table && i == 0 && is_row;
    if (terminal.colours) line = is_head ? paint(line, kBold) : paint_marks(std::move(line));
    text += line + "\n";
  }
  return text;
}

}  // namespace

Terminal find_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return {};
  winsize size{};
  const bool has_size = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  const char* const kind = std::getenv("TERM");
  const bool is_dumb = kind != nullptr && std::string_view(kind) == "dumb";
  return {has_size ? size.ws_col : 0, !is_set("NO_COLOR") && !is_dumb};
}

std::string show_on(const Terminal& terminal, std::string_view text) {
  if (terminal.columns == 0 && !terminal.colours) return std::string(text);
  std::string shown;
  Lines block;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.empty()) {
      shown += show_block(std::exchange(block, {}), terminal) + "\n";
    } else {
      block.emplace_back(line);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shown + show_block(std::move(block), terminal);
}

}  // namespace frazil
