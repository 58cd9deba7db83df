#pragma once
// A time line is what happened, simulated or real: spans of actions on the lanes of devices, in
// integer ns.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"
#include "traces/action.h"

namespace frazil {

// The queues of one device. Spans of one lane never overlap.
enum class Lane : std::uint8_t { kCompute, kSend, kReceive, kCollective, kHost };

std::string_view lane_name(Lane lane);
Lane parse_lane(std::string_view text, const std::string& file, int line);  // throws InputError

struct Span {
  DeviceId device;
  Lane lane = Lane::kCompute;
  Action action;
  TimePoint start;
  TimePoint end;

  Duration duration() const { return end - start; }
  friend bool operator==(const Span&, const Span&) = default;
};

// A time line that sort_spans has sorted is in the order (start, device, lane, end, step). Equal
// spans, which take no time, stay in the order in which their lane ran them, since nothing else in
// a time line tells it.
struct Timeline {
  int devices = 0;
  std::vector<Span> spans;

  friend bool operator==(const Timeline&, const Timeline&) = default;
};

// Says whether `a` stands before `b` in a sorted time line.
bool comes_before(const Span& a, const Span& b);
void sort_spans(Timeline& timeline);

// Returns the time from the first start to the last end over all spans; 0 when empty.
Duration makespan(const Timeline& timeline);
// Returns last end - first start over the spans of one device; 0 when it has none.
Duration span_of(const Timeline& timeline, DeviceId device);
Duration max_span(const Timeline& timeline);
// Returns the sum of the compute spans (R and U included) of one device, or of all devices.
Duration busy(const Timeline& timeline, DeviceId device);
Duration busy(const Timeline& timeline);
// Returns 1 - busy / (devices x makespan), the idle share; bubble_of_span has max_span in place of
// makespan. Both return 0 for an empty time line.
double bubble(const Timeline& timeline);
double bubble_of_span(const Timeline& timeline);
// Returns the spans of one step, or of the `count` steps from `first` on, moved so that the
// earliest starts at 0.
Timeline step_of(const Timeline& timeline, Step step);
Timeline window_of(const Timeline& timeline, Step first, Step count);
std::vector<Step> steps_of(const Timeline& timeline);  // ascending, each once
// Returns the first steps of the windows of `count` steps that follow one another, ascending: a run
// of steps without a gap is cut from its first step on, and what is left of it is left out.
// Requires: count >= 1.
std::vector<Step> windows_of(const Timeline& timeline, Step count);

// clang-format off
// Draws a text picture for people and goldens: a row "d0 |0123  aabbccdd|" per device, a column per
// `cell` of time from the first start to the last end. A column shows the action that runs in its
// middle:
//   F       digit, micro-batch modulo 10           R            *
//   B or I  a..t, micro-batch modulo 20            U            U
//   W       A..T, micro-batch modulo 20            nothing      a space
//   pair    its two halves, in turn                REDUCE_GRAD  =, if no compute runs
// An action of several micro-batches shows the first. Spans of other kinds are not drawn. Throws
// std::logic_error for more than 1000000 columns.
// clang-format on
std::string draw(const Timeline& timeline, Duration cell);

}  // namespace frazil
