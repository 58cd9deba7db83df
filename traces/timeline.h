#pragma once
// What happened, simulated or real: spans of actions on the lanes of devices, in integer ns.

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

// Sorted by (start, device, lane, end, step, text of the action) after sort_spans.
struct Timeline {
  int devices = 0;
  std::vector<Span> spans;

  friend bool operator==(const Timeline&, const Timeline&) = default;
};

// The order of a sorted time line.
bool comes_before(const Span& a, const Span& b);
void sort_spans(Timeline& timeline);

// First start to last end over all spans; 0 when empty.
Duration makespan(const Timeline& timeline);
// Last end - first start of one device's spans; 0 when it has none.
Duration span_of(const Timeline& timeline, DeviceId device);
Duration max_span(const Timeline& timeline);
// Sum of the compute spans (R and U included) of one device, or of all.
Duration busy(const Timeline& timeline, DeviceId device);
Duration busy(const Timeline& timeline);
// 1 - busy / (devices x makespan), and the same with max_span; 0 for an empty time line.
double bubble(const Timeline& timeline);
double bubble_of_span(const Timeline& timeline);
// The spans of one step, moved so that the earliest starts at 0.
Timeline step_of(const Timeline& timeline, Step step);
std::vector<Step> steps_of(const Timeline& timeline);  // ascending, each once

// Text picture for people and goldens: a row "d0 |0123  aabbccdd|" per device, a column per `cell`
// of time from the first start to the last end. A column shows the action that runs in its middle:
//   F       digit, micro-batch modulo 10           R  *
//   B or I  a..t, micro-batch modulo 20            U  U
//   W       A..T, the same                         nothing: a space
//   pair    its two halves, in turn                REDUCE_GRAD, where no compute runs: =
// Of several micro-batches the first counts; other lanes are left out. More than 1000000 columns
// are refused (std::logic_error).
std::string draw(const Timeline& timeline, Duration cell);

}  // namespace frazil
