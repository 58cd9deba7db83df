#include "planner/partition/load_bounds.h"

#include <algorithm>

namespace frazil {
namespace {

__extension__ using Wide = __int128;

WorkTime times(WorkTime time, std::int64_t count) {
  const Wide product = static_cast<Wide>(time.count()) * count;
  return product > kLongestWork.count() ? kLongestWork
                                        : WorkTime{static_cast<std::int64_t>(product)};
}

}  // namespace

HostRelief::HostRelief(const PartGraph& graph) {
  std::vector<const Part*> parts;
  for (const Part& part : graph.parts) {
    if (part.runs_on_device && part.load > WorkTime{0}) parts.push_back(&part);
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part* a, const Part* b) {
    return static_cast<Wide>(a->load.count()) * b->host_load.count() >
           static_cast<Wide>(b->load.count()) * a->host_load.count();
  });
  points_.push_back({});
  for (const Part* const part : parts) {
    points_.push_back(
        {points_.back().host_time + part->host_load, points_.back().saved + part->load});
  }
}

WorkTime HostRelief::saved(WorkTime host_time, int hosts) const {
  if (hosts == 0) return WorkTime{0};
  host_time = times(host_time, hosts);
  const auto next =
      std::upper_bound(points_.begin(), points_.end(), host_time,
                       [](WorkTime time, const Point& point) { return time < point.host_time; });
  const Point& before = *(next - 1);
  if (next == points_.end()) return before.saved;
  const Wide part = static_cast<Wide>((next->saved - before.saved).count()) *
                    (host_time - before.host_time).count();
  const Wide length = (next->host_time - before.host_time).count();
  return before.saved + WorkTime{static_cast<std::int64_t>(divide_up(part, length))};
}

WorkTime time_to_do(WorkTime work, const HostRelief& relief, int devices, int hosts) {
  WorkTime low{0};
  WorkTime high = kLongestWork;
  while (low < high) {
    const WorkTime middle = low + (high - low) / 2;
    const bool is_enough = times(middle, devices) >= work - relief.saved(middle, hosts);
    (is_enough ? high : low) = is_enough ? middle : middle + WorkTime{1};
  }
  return low;
}

WorkTime total_load(const PartGraph& graph) {
  WorkTime total{0};
  for (const Part& part : graph.parts) {
    if (part.runs_on_device) total += part.load;
  }
  return total;
}

WorkTime bound_load(const PartGraph& graph, const HostRelief& relief, int devices, int hosts) {
  WorkTime largest{0};
  for (const Part& part : graph.parts) {
    WorkTime least = WorkTime::max();
    if (part.runs_on_device && devices > 0) least = part.load;
    if (hosts > 0) least = std::min(least, part.host_load);
    if (least == WorkTime::max()) return least;
    largest = std::max(largest, least);
  }
  return std::max(largest, time_to_do(total_load(graph), relief, devices, hosts));
}

}  // namespace frazil
