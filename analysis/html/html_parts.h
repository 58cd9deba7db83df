#pragma once
// Makes the pieces of the report page: head with style sheet, tables, tiles of key numbers. Text is
// escaped here; what is called markup is taken as it is.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/tables/table.h"

namespace frazil {

// Opens a page under a heading of its title, which is escaped here.
std::string open_page(const std::string& title);
// Closes a page with its script.
std::string close_page();

// Returns a list of notes that stand out; "" without any.
std::string html_notes(const std::vector<std::string>& notes);

// Returns a table with numbers right and words left, by column; it scrolls sideways if the window
// is narrow.
std::string html_table(const Table& table);
// Returns a table folded under its summary, open if it is short; `below` is markup under the table.
std::string html_details(std::string_view summary, const Table& table,
                         const std::string& below = "");

struct Tile {
  std::string label;
  std::string value;
  std::string remark;
  std::string warning = {};  // stands out under the value
};
std::string html_tiles(const std::vector<Tile>& tiles);

std::string html_paragraph(std::string_view css_class, std::string_view text);
// Returns a picture without its style sheet, which open_page() has for all pictures.
std::string html_figure(const std::string& svg_markup);
// Returns a link to a file beside the page; every letter that has a meaning in an address is
// written by its code.
std::string html_link(const std::string& file, std::string_view text);
inline constexpr int kFullWidth = 960;  // pixels, of a figure
inline constexpr int kHalfWidth = 468;  // pixels, of each figure of a pair

// Write numbers for people: "1,234", "12.3", "0.0123", and a long dash for nothing.
std::string number_text(std::optional<double> value, int decimals);
std::string count_text(std::int64_t value);
std::string rate_text(std::optional<double> per_second);

}  // namespace frazil
