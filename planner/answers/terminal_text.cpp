#include "planner/answers/terminal_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "planner/answers/terminal_table.h"

namespace frazil {
namespace {

constexpr std::size_t kNarrowest = 20;  // below that nothing is fitted
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

void cut(std::string& line, std::size_t columns) {
  if (width_of(line) <= columns) return;
  Lines characters = characters_of(line);
  characters.resize(columns - 1);
  line.clear();
  for (const std::string& character : characters) line += character;
  line += kCut;
}

// Returns the columns by which further lines of a line are indented: those before its last column
// if that begins in the left half, else two.
std::size_t indent_of(std::string_view line, std::size_t columns) {
  const std::size_t gap = line.rfind("  ");
  const std::size_t before = gap == std::string_view::npos ? 0 : width_of(line.substr(0, gap + 2));
  return before > 0 && before <= columns / 2 ? before : 2;
}

// Goes on in further lines, which are indented. A word that is wider than the terminal stays whole,
// for it may be the name of a file.
std::string wrap(std::string_view line, std::size_t columns) {
  const std::string further = "\n" + std::string(indent_of(line, columns), ' ');
  std::string text;
  std::size_t width = 0;
  while (!line.empty()) {
    const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t end = std::min(line.find(' ', blanks), line.size());
    std::string_view word = line.substr(0, end);
    if (width > 0 && width + width_of(word) > columns) {
      word.remove_prefix(blanks);
      text += further;
      width = further.size() - 1;
    }
    text += word;
    width += width_of(word);
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

std::string fit(std::string line, bool is_cell_row, std::size_t columns) {
  if (columns < kNarrowest) return line;
  if (!is_cell_row || ends_in_sentence(line)) return wrap(line, columns);
  cut(line, columns);
  return line;
}

// The head of a table names its columns; it has no figures.
bool is_head(std::string_view line) {
  return has_columns(line) && line.find_first_of("0123456789") == std::string_view::npos;
}

// Shows the rows of one table, or one line that is no row.
std::string show_group(const Lines& rows, const Terminal& terminal) {
  const auto columns = static_cast<std::size_t>(std::max(terminal.columns, 0));
  const bool is_wide = std::any_of(rows.begin(), rows.end(), [&](const std::string& line) {
    return columns >= kNarrowest && width_of(line) > columns;
  });
  Table table;
  for (const std::string& row : rows) table.takes(row);
  const Lines shown = is_wide && rows.size() > 1 ? table.fitted(columns) : rows;
  std::string text;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    std::string line = fit(shown[i], rows.size() > 1, columns);
    if (terminal.colours) {
      const bool heads = i == 0 && rows.size() > 1 && is_head(rows[i]);
      line = heads ? paint(line, kBold) : paint_marks(std::move(line));
    }
    text += line + "\n";
  }
  return text;
}

// Shows lines between two empty ones: tables and sentences.
std::string show_block(const Lines& block, const Terminal& terminal) {
  std::string text;
  for (std::size_t i = 0; i < block.size();) {
    Table table;
    std::size_t end = i;
    while (end < block.size() && table.takes(block[end])) ++end;
    end = std::max(end, i + 1);
    const auto at = [&](std::size_t k) { return block.begin() + static_cast<std::ptrdiff_t>(k); };
    text += show_group(Lines(at(i), at(end)), terminal);
    i = end;
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
  return shown + show_block(block, terminal);
}

}  // namespace frazil
