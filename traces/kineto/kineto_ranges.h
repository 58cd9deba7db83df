#pragma once
// Looks up the ranges of a trace by time: the steps that count, and the innermost range on a host
// thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/kineto/kineto_trace.h"

namespace frazil {

// A range with what follows from its nesting.
struct NestedRange {
  std::int64_t start = 0;
  std::int64_t end = 0;   // no later than the end of the range around it
  std::int64_t self = 0;  // duration less the ranges inside it
  std::uint32_t name = 0;
  RangeKind kind = RangeKind::kLayer;
  std::int32_t step = -1;           // step that holds its start, in KinetoSteps::kept; -1: none
  bool is_inside_backward = false;  // inside a backward node: a forward done again
};

// The ranges of one thread, with a look-up of the innermost range at any time.
class NestedRanges {
 public:
  // Takes ranges in any order. A range that ends after the one around it is cut off at that end.
  explicit NestedRanges(std::vector<HostRange> ranges);

  std::vector<NestedRange>& all() { return ranges_; }  // by start, outer before inner
  const std::vector<NestedRange>& all() const { return ranges_; }
  // Returns the index in all() of the innermost range at `time`; -1: no range is open.
  std::int32_t innermost_at(std::int64_t time) const;
  // Returns the index in all() of the first range that starts in [begin, end); -1: none.
  std::int32_t first_start_in(std::int64_t begin, std::int64_t end) const;

 private:
  struct Change {
    std::int64_t time = 0;
    std::int32_t innermost = -1;
  };

  void change(std::int64_t time, std::int32_t innermost);

  std::vector<NestedRange> ranges_;
  std::vector<Change> changes_;
};

// The steps that count: those of `ProfilerStep#N`, less the first (warm-up) if there are several;
// the whole trace as one step if there are none.
struct KinetoSteps {
  struct Step {
    std::int64_t start = 0;
    std::int64_t end = 0;
  };
  std::vector<Step> kept;  // ascending by time, without overlaps
  int dropped = 0;
  bool has_ranges = false;

  // Returns the index in `kept` of the step that holds `time`; -1: none.
  std::int32_t at(std::int64_t time) const;
};

KinetoSteps find_steps(const KinetoTrace& trace);

}  // namespace frazil
