#pragma once
// Draws the boxes of a time line: an action in the colour of its kind with its text, an overlapped
// pair as two halves above each other, and the legend of all kinds.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/svg/svg.h"
#include "analysis/svg/svg_parts.h"

namespace frazil {

// The stages whose actions each device computes, over all pictures.
class DeviceStages {
 public:
  explicit DeviceStages(const std::vector<TimelinePicture>& pictures);

  // True if some device has several stages.
  bool several() const { return most_ > 1; }
  std::size_t most() const { return most_; }
  // Returns how many stages of its device lie before the action's; 0 for an action that belongs to
  // no stage.
  std::size_t rank(DeviceId device, const Action& action) const;

 private:
  void take(DeviceId device, const Action& action);

  std::map<DeviceId, std::set<std::pair<PipelineId, StageId>>> stages_;
  std::size_t most_ = 0;
};

// Returns the name of a device, or "device 0".
std::string device_name(const std::vector<std::string>& devices, DeviceId device);

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};
// Draws a span; `what` is the title that the pointer shows.
std::string draw_span(const Span& span, const DeviceStages& stages, const Box& box,
                      const std::string& what);

std::vector<LegendEntry> list_kinds(const std::vector<TimelinePicture>& pictures,
                                    const DeviceStages& stages);
// True if some span is a pair, whose halves carry text only if rows are high enough.
bool has_pairs(const std::vector<TimelinePicture>& pictures);

}  // namespace frazil
