#include "analysis/svg/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/svg/svg_frame.h"
#include "analysis/svg/svg_parts.h"

namespace frazil {
namespace {

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

// Returns stretches of steps in which the block is frozen or active all the time.
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

std::string draw_freeze_staircase(const FreezeTrace& trace, int width) {
  const auto blocks = static_cast<double>(trace.blocks.size());
  const double row = std::clamp(280 / std::max(blocks, 1.0), 3.0, 16.0);
  const auto label_every = static_cast<std::size_t>(std::ceil(11 / row));
  const Margins margins = margins_of(width);
  Frame frame{.left = margins.left,
              .right = width - margins.right,
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
    // Block 0 stands at the bottom, so that the frozen prefix grows upward.
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
