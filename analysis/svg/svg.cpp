#include "analysis/svg/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "analysis/svg/svg_frame.h"
#include "analysis/svg/svg_parts.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kSeriesColours = 12;
constexpr double kMarkRow = 14;
constexpr std::size_t kMostMarkRows = 3;
constexpr double kAxisRoom = 40;
constexpr double kLeastPlot = 90;

struct MarkWords {
  std::string svg;
  double height = 0;
};

// Draws the words of marks in as many rows as keep them apart; a word that finds no room is left
// out, but its line is drawn.
MarkWords draw_mark_words(const Chart& chart, const Frame& frame, double top) {
  std::vector<double> taken;  // right end per row
  MarkWords words;
  for (const auto& [value, word] : chart.marks) {
    if (word.empty() || value < frame.x_range.low || value > frame.x_range.high) continue;
    const double width = text_width(word, 9.5);
    const double x = std::min(frame.x(value) + 3, frame.right - width);
    const auto free =
        std::find_if(taken.begin(), taken.end(), [x](double end) { return end + 4 < x; });
    if (free == taken.end() && taken.size() >= kMostMarkRows) continue;
    const auto row = static_cast<double>(free - taken.begin());
    if (free == taken.end()) {
      taken.push_back(x + width);
    } else {
      *free = x + width;
    }
    words.svg += draw_text(x, top + kMarkRow * row + 10, Anchor::kStart, "tiny", word);
  }
  words.height = kMarkRow * static_cast<double>(taken.size());
  return words;
}

std::string draw_mark_lines(const Chart& chart, const Frame& frame, double top) {
  std::string svg;
  for (const auto& [value, word] : chart.marks) {
    if (value < frame.x_range.low || value > frame.x_range.high) continue;
    svg += fmt::format("<path class=\"mark\" d=\"M{} {}V{}\"/>\n", coordinate(frame.x(value)),
                       coordinate(top), coordinate(frame.bottom));
  }
  return svg;
}

// A value that is no number breaks the line.
std::string line_path(const Series& series, const Frame& frame) {
  std::string path;
  bool drawing = false;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!std::isfinite(series.x[i]) || !std::isfinite(frame.y(series.y[i]))) {
      drawing = false;
      continue;
    }
    const std::string x = coordinate(frame.x(series.x[i]));
    const std::string y = coordinate(frame.y(series.y[i]));
    if (!drawing) {
      path += fmt::format("M{} {}", x, y);
    } else {
      path += series.steps ? fmt::format("H{}V{}", x, y) : fmt::format("L{} {}", x, y);
    }
    drawing = true;
  }
  return path;
}

// Returns the classes of a series: its colour and, where there are more series than colours, the
// round in which it comes.
std::string colour_of(const Chart& chart, std::size_t series) {
  const std::size_t number = chart.series[series].beside.value_or(series);
  const std::size_t round = std::min<std::size_t>(number / kSeriesColours, 3);
  const std::string name = fmt::format("s{}", number % kSeriesColours);
  return round == 0 ? name : fmt::format("{} r{}", name, round);
}

std::string draw_series(const Series& series, const std::string& colour, const Frame& frame) {
  constexpr std::size_t kMostDots = 40;
  std::string svg =
      fmt::format("<g class=\"{}\"{}><title>{}</title><path class=\"line\" d=\"{}\"/>", colour,
                  faint_attribute(series.beside.has_value()), escape_markup(series.name),
                  line_path(series, frame));
  if (!series.steps && series.x.size() <= kMostDots) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.x[i]) || !std::isfinite(frame.y(series.y[i]))) continue;
      svg += fmt::format(
          "<path class=\"dot\" d=\"M{} {}m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z\"><title>{} {:.4g}: "
          "{:.4g}</title>"
          "</path>",
          coordinate(frame.x(series.x[i])), coordinate(frame.y(series.y[i])),
          escape_markup(series.name), series.x[i], series.y[i]);
    }
  }
  return svg + "</g>\n";
}

// The place of a word.
struct Place {
  double left;
  double right;
  double top;
  double bottom;

  bool meets(const Place& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

bool meets_curve(const Chart& chart, const Frame& frame, const Place& place) {
  for (const Series& series : chart.series) {
    for (std::size_t i = 0; i + 1 < series.x.size(); ++i) {
      const auto [low, high] = std::minmax({frame.y(series.y[i]), frame.y(series.y[i + 1])});
      const Place stretch{frame.x(series.x[i]), frame.x(series.x[i + 1]), low - 1, high + 1};
      if (place.meets(stretch)) return true;
    }
  }
  return false;
}

struct LevelWords {
  std::string svg;
  std::vector<std::string> homeless;  // words that find no room
};

// Puts each word of a level above or below its line, right or left, where nothing is in the way.
// The words of `elsewhere` have their place already.
LevelWords place_level_words(const Chart& chart, const Frame& frame,
                             const std::vector<std::string>& elsewhere) {
  constexpr double kLetter = 9.5;
  std::vector<Place> taken;
  LevelWords words;
  for (const auto& [value, word] : chart.levels) {
    if (word.empty() || std::count(elsewhere.begin(), elsewhere.end(), word) > 0) continue;
    const double y = frame.y(value);
    const double width = text_width(word, kLetter);
    bool is_placed = false;
    for (const double left : {frame.right - width, frame.left + 4}) {
      const std::array<Place, 2> places = {Place{left, left + width, y - 13, y - 2},
                                           Place{left, left + width, y + 2, y + 13}};
      const auto free = std::find_if(places.begin(), places.end(), [&](const Place& place) {
        return !meets_curve(chart, frame, place) && place.bottom < frame.bottom &&
               std::none_of(taken.begin(), taken.end(),
                            [&](const Place& other) { return place.meets(other); });
      });
      if (free == places.end()) continue;
      words.svg += draw_text(left, free->bottom - 2, Anchor::kStart, "tiny", word);
      taken.push_back(*free);
      is_placed = true;
      break;
    }
    if (!is_placed) words.homeless.push_back(word);
  }
  return words;
}

std::string draw_level_lines(const Chart& chart, const Frame& frame) {
  std::string svg;
  for (const auto& [value, word] : chart.levels) {
    svg += fmt::format("<path class=\"level\" d=\"M{} {}H{}\"/>\n", coordinate(frame.left),
                       coordinate(frame.y(value)), coordinate(frame.right));
  }
  return svg;
}

// Returns the frame of a chart, or none if it has no values. Its height is set once it is known
// what stands above it.
std::optional<Frame> make_frame(const Chart& chart, double width) {
  const Margins margins = margins_of(width);
  Frame frame{.left = margins.left, .right = width - margins.right, .x_range = {}, .y_range = {}};
  for (const Series& series : chart.series) {
    ENSURE(series.x.size() == series.y.size(), "a series has a y for each x");
    for (const double value : series.x) frame.x_range.take(value);
    for (const double value : series.y) frame.y_range.take(value);
  }
  if (frame.x_range.empty() || frame.y_range.empty()) return std::nullopt;
  for (const auto& [value, word] : chart.levels) frame.y_range.take(value);
  // If curves begin soon after zero, the axis begins at zero.
  if (frame.x_range.low > 0 && frame.x_range.low < 0.3 * frame.x_range.high) frame.x_range.low = 0;
  widen_if_flat(frame.x_range);
  if (chart.counts) frame.y_ticks = static_cast<int>(std::clamp(frame.y_range.high, 1.0, 5.0));
  frame.is_log = chart.is_log && frame.y_range.low > 0;
  if (frame.is_log) {
    round_log_ends(frame.y_range);
  } else {
    round_ends(frame.y_range, frame.y_ticks);
  }
  return frame;
}

// One curve needs no name unless there is something to say about it. `levels`: words that found no
// room beside their lines.
std::vector<LegendEntry> legend_of(const Chart& chart, const std::vector<std::string>& levels) {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    if (chart.series.size() == 1 && series.remark.empty()) continue;
    entries.push_back({.css_class = colour_of(chart, i),
                       .word = series.name + series.remark,
                       .warns = series.warns,
                       .faint = series.beside.has_value()});
  }
  for (const std::string& word : levels) {
    entries.push_back({.css_class = "", .word = "dashed: " + word});
  }
  return entries;
}

std::string draw_head(const Chart& chart, double width, double height) {
  return open_svg(width, height, chart.title) +
         draw_text(0, 14, Anchor::kStart, "title", chart.title) +
         draw_text(text_width(chart.title, 14.5) + 10, 14, Anchor::kStart, "soft", chart.y_label);
}

// What stands above the curves, and the frame that is left for them.
struct Above {
  Legend legend;
  MarkWords words;
  double words_top = 0;
  Frame frame;
};

Above set_up(const Chart& chart, const Frame& frame, int height,
             const std::vector<std::string>& levels) {
  Above above;
  above.frame = frame;
  above.legend = draw_legend(legend_of(chart, levels), frame.left, frame.right, 22);
  above.words_top = 24 + above.legend.height;
  above.words = draw_mark_words(chart, frame, above.words_top);
  above.frame.top = above.words_top + above.words.height + 6;
  above.frame.bottom = std::max(height - kAxisRoom, above.frame.top + kLeastPlot);
  return above;
}

}  // namespace

std::string draw_chart(const Chart& chart, int width, int height) {
  std::optional<Frame> frame = make_frame(chart, width);
  if (!frame) {
    return draw_head(chart, width, height) +
           draw_text(width / 2.0, height / 2.0, Anchor::kMiddle, "soft", "no data") + close_svg();
  }
  const std::vector<std::string> homeless =
      place_level_words(chart, set_up(chart, *frame, height, {}).frame, {}).homeless;
  const Above above = set_up(chart, *frame, height, homeless);
  const Frame& placed = above.frame;
  std::string svg = draw_head(chart, width, placed.bottom + kAxisRoom) + above.legend.svg +
                    draw_y_axis(placed) + draw_x_axis(placed, chart.x_label) +
                    draw_level_lines(chart, placed) +
                    place_level_words(chart, placed, homeless).svg;
  svg += fmt::format("<g class=\"plot\"{}>\n", describe_frame(placed, true)) + above.words.svg +
         draw_mark_lines(chart, placed, above.words_top);
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    svg += draw_series(chart.series[i], colour_of(chart, i), placed);
  }
  return svg + "</g>\n" + close_svg();
}

}  // namespace frazil
