#pragma once
// Splits the time of a step by where it went, from its time line alone, so that a prediction and a
// measurement are split alike. The parts are those of DeviceTime (planner/prediction/idle_time.h);
// a measured step has one more, between actions.

#include <optional>
#include <string_view>
#include <vector>

#include "planner/prediction/idle_time.h"
#include "traces/timeline.h"

namespace frazil {

struct TimeSplit {
  DeviceTime parts;
  // The executor itself: a device has its input and does not yet begin with the next action.
  Duration between{0};

  Duration total() const { return frazil::total(parts) + between; }
  // Returns the share of the time in which nothing is computed; 0 without any time.
  double bubble() const;
  friend bool operator==(const TimeSplit&, const TimeSplit&) = default;
};

TimeSplit operator+(const TimeSplit& a, const TimeSplit& b);

// The words of the parts in the order in which they are told: "compute", ..., "between actions".
std::vector<std::string_view> list_titles();
// Requires: a title of list_titles().
Duration part_of(const TimeSplit& split, std::string_view title);

// Returns one entry per device, each with the makespan as its total. `step`: one step or window. A
// wait for a message lasts until the compute that makes it ends; what follows until it is there is
// exposed communication. In a measured step waits are the spans of RECV; a predicted one has none,
// and its device waits for the input of its next compute.
std::vector<TimeSplit> split_time(const Timeline& step);

// Returns the mean over the devices of one step, or over all devices of all measured steps; none
// without a span. `window`: how many steps follow one another without a wait of all devices.
std::optional<TimeSplit> mean_split(const Timeline& steps, Step window = 1);
// Returns the mean of each device over all measured steps.
std::vector<TimeSplit> mean_splits_by_device(const Timeline& steps, Step window = 1);

}  // namespace frazil
