#pragma once
// Ranges of a trace by time: the steps that count, and which range is innermost on a host thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/kineto/kineto_trace.h"

namespace frazil {

// A range with what its nesting says.
struct NestedRange {
  std::int64_t start = 0;
  std::int64_t end = 0;   // no later than that of the range around it
  std::int64_t self = 0;  // without the ranges inside it
  std::uint32_t name = 0;
  RangeKind kind = RangeKind::kLayer;
  std::int32_t step = -1;           // into KinetoSteps::kept, by its start; -1: none
  bool is_inside_backward = false;  // a forward done again
};

// The ranges of one thread and, among them, the innermost at any time.
class NestedRanges {
 public:
  // `ranges` in any order. Of a range that ends after the one around it, the rest is cut off.
  explicit NestedRanges(std::vector<HostRange> ranges);

  std::vector<NestedRange>& all() { return ranges_; }  // by start, outer before inner
  const std::vector<NestedRange>& all() const { return ranges_; }
  // Index into all(); -1: none is open.
  std::int32_t innermost_at(std::int64_t time) const;
  // The first that starts in [begin, end); -1: none.
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

// The steps an attribution counts: those of `ProfilerStep#N`, without the first (warm-up) where
// there are more; the whole trace as one step where there are none.
struct KinetoSteps {
  struct Step {
    std::int64_t start = 0;
    std::int64_t end = 0;
  };
  std::vector<Step> kept;  // by time, none overlaps another
  int dropped = 0;
  bool has_ranges = false;

  std::int32_t at(std::int64_t time) const;  // -1: none
};

KinetoSteps find_steps(const KinetoTrace& trace);

}  // namespace frazil
