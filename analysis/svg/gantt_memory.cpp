#include "analysis/svg/gantt_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "analysis/svg/memory_chart.h"
#include "profiles/quantity_text.h"
#include "sim/simulate.h"

namespace frazil {
namespace {

Bytes peak_of(const GanttInput& input, std::size_t device) {
  return input.step->simulation.memory[device].total;
}

bool is_limited(const Device& device) {
  return device.memory_limit.count < std::numeric_limits<std::int64_t>::max();
}

bool fits(const GanttInput& input, std::size_t device) {
  return peak_of(input, device) <= input.setting.cluster().devices[device].memory_limit;
}

// Returns "6.69 MiB of 8.00 MiB", exact to the byte if rounding would hide which is more.
std::string compare_to_limit(const GanttInput& input, std::size_t device) {
  const Bytes peak = peak_of(input, device);
  const Bytes limit = input.setting.cluster().devices[device].memory_limit;
  if (!is_limited(input.setting.cluster().devices[device])) return to_text(peak);
  if (peak != limit && to_text(peak) == to_text(limit)) {
    return fmt::format("{} of {} bytes", peak.count, limit.count);
  }
  return fmt::format("{} of {}", to_text(peak), to_text(limit));
}

// Returns a line for each limit; if there are several limits, each line says whose it is.
std::vector<std::pair<double, std::string>> list_limits(const GanttInput& input, Bytes most,
                                                        const MemoryUnit& unit) {
  std::map<Bytes, std::vector<std::string>> owners;
  for (const Device& device : input.setting.cluster().devices) {
    if (is_limited(device)) owners[device.memory_limit].push_back(device.name);
  }
  std::vector<std::pair<double, std::string>> limits;
  for (const auto& [limit, names] : owners) {
    if (limit.count / 2 > most.count) continue;
    std::string word = "limit " + to_text(limit);
    if (owners.size() > 1) word += fmt::format(" of {}", names.front());
    if (owners.size() > 1 && names.size() > 1)
      word += fmt::format(" and {} more", names.size() - 1);
    limits.emplace_back(static_cast<double>(limit.count) / unit.bytes, word);
  }
  return limits;
}

std::vector<Chart> chart_bytes(const GanttInput& input) {
  const auto traces = simulate_memory(input.step->lowered.graph, input.setting);
  Bytes most;
  bool shows = false;
  for (std::size_t d = 0; d < traces.size(); ++d) {
    most = std::max(most, peak_of(input, d));
    shows = shows || traces[d].curve.size() > 1 || !fits(input, d);
  }
  if (!shows) return {};
  const MemoryUnit unit = choose_unit(most);
  Chart chart{.title = "Memory held",
              .x_label = "ms",
              .y_label = unit.word,
              .series = {},
              .marks = {},
              .levels = list_limits(input, most, unit)};
  for (std::size_t d = 0; d < traces.size(); ++d) {
    Series series =
        make_memory_series(input.setting.cluster().devices[d].name, traces[d].curve, unit);
    series.warns = !fits(input, d);
    series.remark = (series.warns ? " does not fit: " : ": ") + compare_to_limit(input, d);
    chart.series.push_back(std::move(series));
  }
  return {chart};
}

// Chunks and kept inputs that come (or go, if negative) on one device at one time.
struct Held {
  int chunks = 0;
  int inputs = 0;
};
using HeldChanges = std::map<TimePoint, Held>;

using StageKey = std::pair<PipelineId, StageId>;

class ChunkCounter {
 public:
  explicit ChunkCounter(const GanttInput& input)
      : changes_(input.setting.cluster().devices.size()) {
    const auto& [lowered, simulation] = *input.step;
    for (const Action& action : lowered.actions) {
      if (action.kind != ActionKind::kRecompute) continue;
      recomputing_.emplace(action.pipeline, action.stage);
    }
    for (std::size_t task = 0; task < lowered.graph.size(); ++task) {
      const TaskLane& lane = lowered.graph.lanes()[lowered.graph.lane_of()[task]];
      if (lane.lane != Lane::kCompute) continue;
      count(lowered.actions[task], simulation.start[task], simulation.end[task],
            changes_[lane.device.index()]);
    }
  }

  bool recomputes() const { return !recomputing_.empty(); }
  const HeldChanges& of(std::size_t device) const { return changes_[device]; }

 private:
  void count(const Action& action, TimePoint start, TimePoint end, HeldChanges& changes) const {
    if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
      for (const Action& half : pair->halves) count(half, start, end, changes);
      return;
    }
    if (!action.micro_batches) return;
    const int number = action.micro_batches->count();
    Held& at_start = changes[start];
    if (action.kind == ActionKind::kForward) {
      const bool keeps_input = recomputing_.count({action.pipeline, action.stage}) > 0;
      (keeps_input ? at_start.inputs : at_start.chunks) += number;
    } else if (action.kind == ActionKind::kRecompute) {
      at_start.inputs -= number;
      at_start.chunks += number;
    } else if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight) {
      changes[end].chunks -= number;
    }
  }

  std::set<StageKey> recomputing_;
  std::vector<HeldChanges> changes_;
};

Series count_series(const std::string& name, const HeldChanges& changes, int Held::*what) {
  Series series{.name = name, .x = {0}, .y = {0}, .steps = true};
  int held = 0;
  int most = 0;
  for (const auto& [at, change] : changes) {
    held += change.*what;
    most = std::max(most, held);
    series.x.push_back(milliseconds_at(at));
    series.y.push_back(held);
  }
  series.remark = fmt::format(": at most {}", most);
  return series;
}

std::vector<Chart> chart_chunks(const GanttInput& input) {
  const ChunkCounter counter(input);
  const auto draw = [&](const std::string& title, const std::string& unit, int Held::*what) {
    Chart chart;
    chart.title = title;
    chart.x_label = "ms";
    chart.y_label = unit;
    chart.counts = true;
    for (std::size_t d = 0; d < input.setting.cluster().devices.size(); ++d) {
      chart.series.push_back(
          count_series(input.setting.cluster().devices[d].name, counter.of(d), what));
    }
    return chart;
  };
  if (!counter.recomputes()) return {draw("Chunks in flight", "", &Held::chunks)};
  return {draw("Chunks in flight", "where a stage recomputes, from R on", &Held::chunks),
          draw("Inputs kept", "from F to R", &Held::inputs)};
}

}  // namespace

std::vector<Chart> make_memory_charts(const GanttInput& input) {
  std::vector<Chart> charts = input.counts_chunks ? chart_chunks(input) : chart_bytes(input);
  const double end = to_ms(input.step->simulation.makespan);
  for (Chart& chart : charts) {
    for (Series& series : chart.series) {
      series.x.push_back(end);
      series.y.push_back(series.y.back());
    }
  }
  return charts;
}

std::vector<std::string> list_misfits(const GanttInput& input) {
  std::vector<std::string> misfits;
  for (std::size_t d = 0; d < input.setting.cluster().devices.size(); ++d) {
    if (fits(input, d)) continue;
    misfits.push_back(fmt::format("{} does not fit: {}", input.setting.cluster().devices[d].name,
                                  compare_to_limit(input, d)));
  }
  return misfits;
}

}  // namespace frazil
