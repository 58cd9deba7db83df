#include "analysis/svg/svg_run.h"

#include <fmt/format.h>

#include <vector>

#include "analysis/compare.h"
#include "analysis/svg/svg.h"
#include "analysis/svg/svg_parts.h"

namespace frazil {
namespace {

constexpr double kHeading = 26;
constexpr double kSpace = 18;

struct Part {
  std::string heading;
  std::string svg;
};

Part draw_phase(const ReportPhase& phase) {
  const Comparison comparison = compare(phase.predicted, phase.measured);
  const std::optional<Step> shown = representative_step(comparison);
  const Timeline measured =
      shown ? window_of(phase.measured, *shown, comparison.window) : Timeline{};
  const std::string title = shown ? fmt::format("Measured: step {}", *shown) : "Measured";
  return {fmt::format("From step {}: {}", phase.first_step, phase.summary),
          draw_timelines({{"Predicted", &phase.predicted}, {title, &measured}})};
}

// Returns the first and the last phase with time lines.
std::vector<const ReportPhase*> choose_phases(const ReportRun& run) {
  std::vector<const ReportPhase*> chosen;
  for (const ReportPhase& phase : run.phases) {
    if (phase.predicted.spans.empty()) continue;
    if (chosen.size() == 2) chosen.pop_back();
    chosen.push_back(&phase);
  }
  return chosen;
}

}  // namespace

std::string draw_run(const ReportRun& run, int width) {
  std::vector<Part> parts{{"", draw_freeze_staircase(run.trace, width)}};
  for (const ReportPhase* phase : choose_phases(run)) parts.push_back(draw_phase(*phase));
  double height = 0;
  std::string inside;
  for (const Part& part : parts) {
    if (!part.heading.empty()) {
      inside += draw_text(0, height + kHeading - 8, Anchor::kStart, "title", part.heading);
      height += kHeading;
    }
    inside += move_down(part.svg, height);
    height += height_of(part.svg) + kSpace;
  }
  return open_svg(width, height, "Freezing, and steps as predicted and as measured") + inside +
         close_svg();
}

}  // namespace frazil
