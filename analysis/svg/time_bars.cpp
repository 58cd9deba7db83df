#include "analysis/svg/time_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/svg/svg_frame.h"
#include "analysis/svg/svg_parts.h"

namespace frazil {
namespace {

constexpr double kBar = 14;
constexpr double kGap = 7;  // above the bars of a device

// The colours of the parts, in the order of list_titles().
constexpr std::array kPartLooks = {"s0", "s1", "s4", "s5", "s3", "s11", "s6", "s7"};

std::vector<LegendEntry> list_parts(const std::vector<TimeBar>& bars) {
  std::vector<LegendEntry> entries;
  const std::vector<std::string_view> titles = list_titles();
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const bool is_told = std::any_of(bars.begin(), bars.end(), [&](const TimeBar& bar) {
      return part_of(bar.split, titles[i]) > Duration{0};
    });
    if (is_told) entries.push_back({kPartLooks.at(i), std::string(titles[i])});
  }
  return entries;
}

std::string draw_bar(const TimeBar& bar, const Frame& frame, double y) {
  const std::vector<std::string_view> titles = list_titles();
  const double whole = to_ms(bar.split.total());
  std::string svg;
  double done = 0;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const double time = to_ms(part_of(bar.split, titles[i]));
    if (time <= 0) continue;
    svg += fmt::format(
        "<g class=\"{}\"><title>{}, {}: {:.3f} ms, {:.1f} %</title><path d=\"M{} "
        "{}h{}v{:.0f}h-{}z\"/></g>\n",
        kPartLooks.at(i), bar.word, titles[i], time, 100 * time / whole, coordinate(frame.x(done)),
        coordinate(y), coordinate(frame.x(done + time) - frame.x(done)), kBar,
        coordinate(frame.x(done + time) - frame.x(done)));
    done += time;
  }
  return svg;
}

}  // namespace

std::string draw_time_bars(const std::vector<TimeBar>& bars, int width) {
  const Margins margins = margins_of(width);
  Frame frame{.left = margins.left + 60,
              .right = width - margins.right,
              .x_range = {0, 0},
              .y_range = {0, 1}};
  for (const TimeBar& bar : bars) frame.x_range.take(to_ms(bar.split.total()));
  widen_if_flat(frame.x_range);
  const Legend legend = draw_legend(list_parts(bars), frame.left, frame.right, 0);
  frame.top = legend.height + 4;
  std::string words;
  std::string drawn;
  double y = frame.top;
  for (const TimeBar& bar : bars) {
    if (!bar.device.empty()) {
      y += kGap;
      words += draw_text(frame.left - 68, y + 11, Anchor::kEnd, "", shorten(bar.device, 14));
    }
    words += draw_text(frame.left - 8, y + 11, Anchor::kEnd, "tiny", bar.word);
    drawn += draw_bar(bar, frame, y);
    y += kBar + 1;
  }
  frame.bottom = y + 4;
  return open_svg(width, frame.bottom + 40, "Where the time of each device goes") + legend.svg +
         words + draw_x_axis(frame, "ms") +
         fmt::format("<g class=\"plot\"{}>\n", describe_frame(frame, false)) + drawn + "</g>\n" +
         close_svg();
}

}  // namespace frazil
