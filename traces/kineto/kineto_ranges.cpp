#include "traces/kineto/kineto_ranges.h"

#include <algorithm>
#include <limits>

namespace frazil {

NestedRanges::NestedRanges(std::vector<HostRange> ranges) {
  // Outer ranges go before inner ones; the order of the file decides between equals.
  std::stable_sort(ranges.begin(), ranges.end(), [](const HostRange& a, const HostRange& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  });
  std::vector<std::int32_t> open;
  const auto close_until = [&](std::int64_t time) {
    while (!open.empty() && ranges_[static_cast<std::size_t>(open.back())].end <= time) {
      const std::int64_t end = ranges_[static_cast<std::size_t>(open.back())].end;
      open.pop_back();
      change(end, open.empty() ? -1 : open.back());
    }
  };
  for (const HostRange& range : ranges) {
    close_until(range.start);
    NestedRange nested;
    nested.start = range.start;
    nested.end = range.end();
    nested.name = range.name;
    nested.kind = range.kind;
    if (!open.empty()) {
      NestedRange& around = ranges_[static_cast<std::size_t>(open.back())];
      nested.end = std::min(nested.end, around.end);
      around.self -= nested.end - nested.start;
    }
    nested.self = nested.end - nested.start;
    open.push_back(static_cast<std::int32_t>(ranges_.size()));
    ranges_.push_back(nested);
    change(nested.start, open.back());
  }
  close_until(std::numeric_limits<std::int64_t>::max());
}

// Notes a change; the last of several changes at one time holds.
void NestedRanges::change(std::int64_t time, std::int32_t innermost) {
  if (changes_.empty() || changes_.back().time != time) changes_.push_back({time, innermost});
  changes_.back().innermost = innermost;
}

std::int32_t NestedRanges::innermost_at(std::int64_t time) const {
  const auto after =
      std::upper_bound(changes_.begin(), changes_.end(), time,
                       [](std::int64_t t, const Change& change) { return t < change.time; });
  return after == changes_.begin() ? -1 : (after - 1)->innermost;
}

std::int32_t NestedRanges::first_start_in(std::int64_t begin, std::int64_t end) const {
  const auto first =
      std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                       [](const NestedRange& range, std::int64_t t) { return range.start < t; });
  if (first == ranges_.end() || first->start >= end) return -1;
  return static_cast<std::int32_t>(first - ranges_.begin());
}

std::int32_t KinetoSteps::at(std::int64_t time) const {
  const auto after =
      std::upper_bound(kept.begin(), kept.end(), time,
                       [](std::int64_t t, const Step& step) { return t < step.start; });
  if (after == kept.begin() || time >= (after - 1)->end) return -1;
  return static_cast<std::int32_t>(after - kept.begin()) - 1;
}

KinetoSteps find_steps(const KinetoTrace& trace) {
  KinetoSteps steps;
  for (const HostThread& thread : trace.threads) {
    for (const HostRange& range : thread.ranges) {
      if (range.kind == RangeKind::kStep) steps.kept.push_back({range.start, range.end()});
    }
  }
  steps.has_ranges = !steps.kept.empty();
  if (!steps.has_ranges) {
    using Limits = std::numeric_limits<std::int64_t>;
    steps.kept.push_back({Limits::min(), Limits::max()});
    return steps;
  }
  std::sort(steps.kept.begin(), steps.kept.end(),
            [](const auto& a, const auto& b) { return a.start < b.start; });
  // Several threads or processes may mark the same step.
  const auto overlaps = [](const auto& a, const auto& b) { return b.start < a.end; };
  steps.kept.erase(std::unique(steps.kept.begin(), steps.kept.end(), overlaps), steps.kept.end());
  if (steps.kept.size() > 1) {
    steps.kept.erase(steps.kept.begin());
    steps.dropped = 1;
  }
  return steps;
}

}  // namespace frazil
