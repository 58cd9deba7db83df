#pragma once
// Makes what the pictures share: the <svg> element with its style sheet, escaped text, the values
// of axis ticks, legends. Lengths are in pixels of the picture's own coordinates. Coordinates are
// written with two decimals; the sizes of pictures and the `y` of move_down() are whole pixels.

#include <string>
#include <string_view>
#include <vector>

namespace frazil {

// Writes & < > " ' as entities, and bytes below 0x20, most of which XML forbids, as spaces. The
// result is good for HTML too.
std::string escape_markup(std::string_view text);

std::string coordinate(double value);  // "12.50", never "-0.00"

// Returns the <style> element that every picture has; one for a whole page is enough.
std::string style_of_pictures();
// Returns <svg ...> with its style sheet; `label` is what a screen reader says. Colours are chosen
// to differ for every kind of colour vision (after Okabe & Ito 2008) and follow light or dark.
std::string open_svg(double width, double height, std::string_view label);
std::string close_svg();
// Returns the height, in whole pixels, of a picture. Requires: it begins with what open_svg() made.
double height_of(const std::string& svg);
// Returns a picture, which begins with open_svg(), to be nested in another one `y` below its top.
std::string move_down(std::string svg, double y);

enum class Anchor { kStart, kMiddle, kEnd };
// Draws one line of text, which is escaped here; `css_class` may be empty.
std::string draw_text(double x, double y, Anchor anchor, std::string_view css_class,
                      std::string_view text);
// Returns about how wide `text` is at `size` pixels: enough to keep labels apart.
double text_width(std::string_view text, double size = 12);
// Returns `text`; if it has more than `letters` letters (UTF-8 code points), the first letters - 1
// of them and an ellipsis.
std::string shorten(const std::string& text, std::size_t letters);

// Round numbers (1, 2 or 5 x 10^k apart) inside [low, high], at most `wanted` + 1 of them, in the
// unit of the axis.
struct Ticks {
  double spacing = 1;  // between two values
  int decimals = 0;    // that text() writes
  std::vector<double> values;

  std::string text(double value) const;
};
Ticks make_ticks(double low, double high, int wanted);

// Returns the attribute that makes a group fainter, to be written right after its class attribute;
// "" if it is not faint.
std::string_view faint_attribute(bool faint);

struct LegendEntry {
  std::string css_class;  // of the swatch; empty: no swatch
  std::string word;
  bool warns = false;  // the word is drawn as a warning
  bool faint = false;  // the swatch is fainter; the word is not
};
struct Legend {
  std::string svg;
  double height = 0;
};
// Draws swatches with words from `left` on, wrapped before `right`.
Legend draw_legend(const std::vector<LegendEntry>& entries, double left, double right, double top);

}  // namespace frazil
