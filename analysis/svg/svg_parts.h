#pragma once
// What the pictures share: the frame with its style sheet, escaped text, axis ticks, legends.
// Lengths are in pixels of the picture's own coordinates, written with two decimals.

#include <string>
#include <string_view>
#include <vector>

namespace frazil {

// & < > " ' as entities; control characters, which XML forbids, as spaces. For HTML too.
std::string escape_markup(std::string_view text);

std::string coordinate(double value);  // "12.50", never "-0.00"

// <svg ...> with style sheet; `label` is what a screen reader says. Colours are chosen to differ
// for every kind of colour vision (after Okabe & Ito 2008) and follow light or dark.
std::string open_svg(double width, double height, std::string_view label);
std::string close_svg();

enum class Anchor { kStart, kMiddle, kEnd };
// One line of text, escaped here; `css_class` may be empty.
std::string draw_text(double x, double y, Anchor anchor, std::string_view css_class,
                      std::string_view text);
// About how wide `text` is at `size` pixels: enough to keep labels apart.
double text_width(std::string_view text, double size = 12);
// The first letters of `text` that fit, with an ellipsis when some do not.
std::string shorten(const std::string& text, std::size_t letters);

// Round numbers (1, 2 or 5 x 10^k apart) inside [low, high], about `wanted` of them.
struct Ticks {
  double spacing = 1;
  int decimals = 0;
  std::vector<double> values;

  std::string text(double value) const;
};
Ticks make_ticks(double low, double high, int wanted);

// Behind the class of a group: fainter, or nothing.
std::string_view faint_attribute(bool faint);

struct LegendEntry {
  std::string css_class;  // of the swatch; none where empty
  std::string word;
  bool warns = false;
  bool faint = false;
};
struct Legend {
  std::string svg;
  double height = 0;
};
// Swatches with words from `left` on, wrapped before `right`.
Legend draw_legend(const std::vector<LegendEntry>& entries, double left, double right, double top);

}  // namespace frazil
