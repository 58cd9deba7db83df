#include "analysis/svg/memory_chart.h"

#include <algorithm>
#include <array>

#include "profiles/quantity_text.h"

namespace frazil {
namespace {

constexpr std::size_t kMostStretches = 200;

std::vector<MemoryMoment> thin_out(const std::vector<MemoryMoment>& curve) {
  if (curve.size() <= 2 * kMostStretches) return curve;
  const Duration stretch = (curve.back().at - curve.front().at) / kMostStretches + Duration{1};
  std::vector<MemoryMoment> kept;
  TimePoint end;
  MemoryMoment last;
  for (const MemoryMoment& moment : curve) {
    if (kept.empty() || moment.at >= end) {
      if (!kept.empty() && last.total != kept.back().total) kept.push_back(last);
      kept.push_back(moment);
      end = moment.at + stretch;
    }
    kept.back().total = std::max(kept.back().total, moment.total);
    last = moment;
  }
  kept.push_back(last);
  return kept;
}

void extend_to(double end, Series& series) {
  if (series.x.empty()) return;
  series.x.push_back(end);
  series.y.push_back(series.y.back());
}

}  // namespace

Series make_memory_series(const std::string& name, const std::vector<MemoryMoment>& curve,
                          const MemoryUnit& unit) {
  Series series{.name = name, .x = {}, .y = {}, .steps = true};
  for (const MemoryMoment& moment : thin_out(curve)) {
    series.x.push_back(milliseconds_at(moment.at));
    series.y.push_back(static_cast<double>(moment.total.count) / unit.bytes);
  }
  return series;
}

Chart make_memory_chart(const DeviceMemory& device) {
  const Bytes most = std::max({device.predicted.peak, device.measured.peak, device.allocator_peak});
  const MemoryUnit unit = choose_unit(most);
  Chart chart{.title = "Memory of " + device.name,
              .x_label = "ms",
              .y_label = unit.word,
              .series = {make_memory_series("predicted", device.predicted.curve, unit),
                         make_memory_series("measured", device.measured.curve, unit)},
              .marks = {}};
  chart.series[0].remark = ": at most " + to_text(device.predicted.peak);
  chart.series[1].remark = ": at most " + to_text(device.measured.peak);
  double end = 0;
  for (const Series& series : chart.series) {
    if (!series.x.empty()) end = std::max(end, series.x.back());
  }
  for (Series& series : chart.series) extend_to(end, series);
  const auto add_level = [&](Bytes level, const std::string& word) {
    chart.levels.emplace_back(static_cast<double>(level.count) / unit.bytes,
                              word + " " + to_text(level));
  };
  if (device.allocator_peak.count > 0) add_level(device.allocator_peak, "allocator");
  if (device.limit && device.limit->count / 2 <= most.count) add_level(*device.limit, "capacity");
  return chart;
}

}  // namespace frazil
