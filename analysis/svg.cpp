#include "analysis/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "analysis/svg_parts.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr int kColours = 6;
constexpr double kRight = 18;
constexpr double kMarkRow = 14;
constexpr std::size_t kMostMarkRows = 3;

// Wide pictures share their left margin, so that a staircase under a chart has the same steps at
// the same places.
double left_margin(double width) { return width >= 800 ? 104 : 52; }

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool empty() const { return low > high; }
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Values to pixels.
struct Frame {
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
  Range x_range;
  Range y_range;

  double x(double value) const {
    return left + (value - x_range.low) / (x_range.high - x_range.low) * (right - left);
  }
  double y(double value) const {
    return bottom - (value - y_range.low) / (y_range.high - y_range.low) * (bottom - top);
  }
};

void widen_if_flat(Range& range) {
  if (range.low == range.high) {
    const double more = std::max(std::abs(range.low) * 0.1, 1e-6);
    range.low -= more;
    range.high += more;
  }
}

// Zero belongs into the picture unless all values lie far from it; ends are round numbers.
void round_ends(Range& range) {
  if (range.low > 0 && range.low < 0.75 * range.high) range.low = 0;
  widen_if_flat(range);
  const double spacing = make_ticks(range.low, range.high, 5).spacing;
  range.low = std::floor(range.low / spacing + 1e-9) * spacing;
  range.high = std::ceil(range.high / spacing - 1e-9) * spacing;
}

struct MarkWords {
  std::string svg;
  double height = 0;
};

// Words stand in as many rows as keep them apart; a word that finds no room is left out, its line
// is not.
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

std::string draw_x_axis(const Frame& frame, const std::string& label) {
  const Ticks ticks =
      make_ticks(frame.x_range.low, frame.x_range.high, frame.right - frame.left >= 600 ? 10 : 6);
  std::string svg;
  for (const double value : ticks.values) {
    svg += fmt::format("<path class=\"axis\" d=\"M{} {}v4\"/>\n", coordinate(frame.x(value)),
                       coordinate(frame.bottom));
    svg += draw_text(frame.x(value), frame.bottom + 17, Anchor::kMiddle, "soft", ticks.text(value));
  }
  svg += fmt::format("<path class=\"axis\" d=\"M{} {}H{}\"/>\n", coordinate(frame.left),
                     coordinate(frame.bottom), coordinate(frame.right));
  svg +=
      draw_text((frame.left + frame.right) / 2, frame.bottom + 33, Anchor::kMiddle, "soft", label);
  return svg;
}

std::string draw_y_axis(const Frame& frame) {
  const Ticks ticks = make_ticks(frame.y_range.low, frame.y_range.high, 5);
  std::string svg;
  for (const double value : ticks.values) {
    svg += fmt::format("<path class=\"grid\" d=\"M{} {}H{}\"/>\n", coordinate(frame.left),
                       coordinate(frame.y(value)), coordinate(frame.right));
    svg += draw_text(frame.left - 8, frame.y(value) + 4, Anchor::kEnd, "soft", ticks.text(value));
  }
  return svg;
}

// A value that is no number breaks the line.
std::string line_path(const Series& series, const Frame& frame) {
  std::string path;
  bool drawing = false;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) {
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

std::string draw_series(const Series& series, int colour, const Frame& frame) {
  constexpr std::size_t kMostDots = 40;
  std::string svg = fmt::format("<g class=\"s{}\"><title>{}</title><path class=\"line\" d=\"{}\"/>",
                                colour, escape_markup(series.name), line_path(series, frame));
  if (!series.steps && series.x.size() <= kMostDots) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
      svg += fmt::format(
          "<path d=\"M{} {}m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z\"><title>{} {:.4g}: {:.4g}</title>"
          "</path>",
          coordinate(frame.x(series.x[i])), coordinate(frame.y(series.y[i])),
          escape_markup(series.name), series.x[i], series.y[i]);
    }
  }
  return svg + "</g>\n";
}

std::optional<Frame> make_frame(const Chart& chart, double width, double height) {
  Frame frame{.left = left_margin(width),
              .right = width - kRight,
              .bottom = height - 40,
              .x_range = {},
              .y_range = {}};
  for (const Series& series : chart.series) {
    ENSURE(series.x.size() == series.y.size(), "a series has a y for each x");
    for (const double value : series.x) frame.x_range.take(value);
    for (const double value : series.y) frame.y_range.take(value);
  }
  if (frame.x_range.empty() || frame.y_range.empty()) return std::nullopt;
  // Curves begin soon after the start; then the axis begins at it.
  if (frame.x_range.low > 0 && frame.x_range.low < 0.3 * frame.x_range.high) frame.x_range.low = 0;
  widen_if_flat(frame.x_range);
  round_ends(frame.y_range);
  return frame;
}

Step last_step(const FreezeTrace& trace) {
  Step last = trace.steps;
  for (const FreezeEvent& event : trace.events) {
    const auto* cost = std::get_if<CostEvent>(&event.what);
    last = std::max(last, event.step + (cost != nullptr ? cost->steps : 0));
  }
  return std::max<Step>(last, 1);
}

struct Stretch {
  Step from = 0;
  Step to = 0;
  bool frozen = false;
};

// Stretches in which one block is frozen or active all the time.
std::vector<Stretch> stretches_of(const FreezeTrace& trace, BlockId block, Step end) {
  std::vector<Stretch> stretches{{0, end, false}};
  for (const FreezeEvent& event : trace.events) {
    const auto* mask_event = std::get_if<MaskEvent>(&event.what);
    if (mask_event == nullptr || block.value >= mask_event->mask.blocks()) continue;
    const bool frozen = mask_event->mask.is_frozen(block);
    if (frozen == stretches.back().frozen) continue;
    stretches.back().to = event.step;
    stretches.push_back({event.step, end, frozen});
  }
  return stretches;
}

std::string draw_block_row(const FreezeTrace& trace, std::size_t block, const Frame& frame,
                           double y, double height) {
  std::string svg;
  for (const Stretch& stretch :
       stretches_of(trace, BlockId{block}, static_cast<Step>(frame.x_range.high))) {
    if (stretch.to <= stretch.from) continue;
    const char* state = stretch.frozen ? "frozen" : "active";
    const double x = frame.x(static_cast<double>(stretch.from));
    svg += fmt::format(
        "<g class=\"{}\"><title>{} {} in steps {} to {}</title><path d=\"M{} "
        "{}H{}v{}H{}z\"/></g>\n",
        state, escape_markup(trace.blocks[block]), state, stretch.from, stretch.to - 1,
        coordinate(x), coordinate(y), coordinate(frame.x(static_cast<double>(stretch.to))),
        coordinate(height), coordinate(x));
  }
  return svg;
}

}  // namespace

std::string draw_chart(const Chart& chart, int width, int height) {
  std::string svg = open_svg(width, height, chart.title);
  svg += draw_text(0, 14, Anchor::kStart, "title", chart.title);
  svg += draw_text(text_width(chart.title, 14.5) + 10, 14, Anchor::kStart, "soft", chart.y_label);
  std::optional<Frame> frame = make_frame(chart, width, height);
  if (!frame) {
    svg += draw_text(width / 2.0, height / 2.0, Anchor::kMiddle, "soft", "no data");
    return svg + close_svg();
  }
  std::vector<LegendEntry> entries;
  if (chart.series.size() > 1) {
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      entries.push_back({fmt::format("s{}", i % kColours), chart.series[i].name});
    }
  }
  const Legend legend = draw_legend(entries, frame->left, frame->right, 22);
  const double words_top = 24 + legend.height;
  const MarkWords words = draw_mark_words(chart, *frame, words_top);
  frame->top = words_top + words.height + 6;
  svg += legend.svg + words.svg + draw_y_axis(*frame) + draw_mark_lines(chart, *frame, words_top) +
         draw_x_axis(*frame, chart.x_label);
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    svg += draw_series(chart.series[i], static_cast<int>(i % kColours), *frame);
  }
  return svg + close_svg();
}

std::string draw_freeze_staircase(const FreezeTrace& trace, int width) {
  const auto blocks = static_cast<double>(trace.blocks.size());
  const double row = std::clamp(280 / std::max(blocks, 1.0), 3.0, 16.0);
  const auto label_every = static_cast<std::size_t>(std::ceil(11 / row));
  Frame frame{.left = left_margin(width),
              .right = width - kRight,
              .top = 28,
              .bottom = 0,
              .x_range = {0, static_cast<double>(last_step(trace))},
              .y_range = {0, 1}};
  frame.bottom = frame.top + row * blocks + 2;
  std::string svg = open_svg(width, frame.bottom + 40, "Frozen and active blocks over steps");
  svg += draw_text(0, 14, Anchor::kStart, "title", "Blocks");
  svg += draw_legend({{"active", "active"}, {"frozen", "frozen"}}, frame.left, frame.right, 2).svg;
  const auto letters = static_cast<std::size_t>(frame.left / 6.5);
  for (std::size_t block = 0; block < trace.blocks.size(); ++block) {
    // Block 0 at the bottom: the frozen prefix grows upward.
    const double y = frame.top + row * (blocks - 1 - static_cast<double>(block));
    svg += draw_block_row(trace, block, frame, y, row - (row > 6 ? 1 : 0.4));
    if (block % label_every == 0) {
      svg += draw_text(frame.left - 8, y + row / 2 + 3.2, Anchor::kEnd,
                       row >= 13 ? "small" : "tiny", shorten(trace.blocks[block], letters));
    }
  }
  svg += draw_x_axis(frame, "step");
  return svg + close_svg();
}

}  // namespace frazil
