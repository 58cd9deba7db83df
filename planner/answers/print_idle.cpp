#include "planner/answers/print_idle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "planner/answers/alike_rows.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

// Returns "12.000  52.2 %": equally wide behind the point, so that columns stay aligned.
std::string cell(Duration part, Duration whole) {
  const double share = whole.count() == 0
                           ? 0
                           : static_cast<double>(part.count()) / static_cast<double>(whole.count());
  return fmt::format("{:.3f} {:>5.1f} %", to_ms(part), 100 * share);
}

// Sets each column as wide as its widest cell, the first column left, the others right.
std::string set_columns(const std::vector<std::vector<std::string>>& columns) {
  std::vector<std::string> lines(columns.front().size());
  for (const std::vector<std::string>& column : columns) {
    std::size_t width = 0;
    for (const std::string& entry : column) width = std::max(width, entry.size());
    const bool is_first = &column == &columns.front();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      lines[i] += is_first ? fmt::format("{:<{}}", column[i], width)
                           : fmt::format("  {:>{}}", column[i], width);
    }
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

struct IdleRow {
  std::string name;
  DeviceTime time;
};

std::vector<IdleRow> list_idle_rows(std::span<const DeviceTime> devices, const Cluster& cluster) {
  ENSURE(devices.size() == cluster.devices.size(), "times of every device of the cluster");
  std::vector<IdleRow> rows;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    rows.push_back({cluster.devices[d].name, devices[d]});
  }
  rows.push_back({"all", sum(devices)});
  return rows;
}

Json time_json(const DeviceTime& time) {
  Json json = Json::object();
  for (const TimePart& column : kTimeParts)
    json[std::string(column.key)] = (time.*column.part).count();
  return json;
}

std::string_view word_of(ActionKind kind) {
  return kind == ActionKind::kPair ? "pairs" : kind_name(kind);
}

std::string list_kinds(const PathShares& shares) {
  std::string text;
  const auto add = [&](std::string_view word, Duration time) {
    if (time.count() == 0) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word, to_text(time));
  };
  for (std::size_t kind = 0; kind < shares.compute.size(); ++kind) {
    add(word_of(static_cast<ActionKind>(kind)), shares.compute[kind]);
  }
  add("transfers", shares.transfers);
  add("hops", shares.hops);
  add("collectives", shares.collectives);
  add("overheads", shares.overheads);
  return text;
}

// Lists the devices with the largest times, in device order, then the sum of the others.
std::string list_devices(const std::vector<Duration>& times, const Cluster& cluster) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::size_t> on_path;
  for (std::size_t d = 0; d < times.size(); ++d) {
    if (times[d].count() > 0) on_path.push_back(d);
  }
  std::stable_sort(on_path.begin(), on_path.end(),
                   [&](std::size_t a, std::size_t b) { return times[a] > times[b]; });
  const std::size_t named = std::min(on_path.size(), kMostNamed);
  const auto others = on_path.begin() + static_cast<std::ptrdiff_t>(named);
  std::sort(on_path.begin(), others);
  std::string text;
  for (auto d = on_path.begin(); d != others; ++d) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", cluster.devices[*d].name,
                        to_text(times[*d]));
  }
  if (others == on_path.end()) return text;
  Duration rest{0};
  for (auto d = others; d != on_path.end(); ++d) rest += times[*d];
  return text + fmt::format(", {} others {}", on_path.end() - others, to_text(rest));
}

std::string_view reason_name(PathStep::Reason reason) {
  switch (reason) {
    case PathStep::Reason::kFirst:
      return "first";
    case PathStep::Reason::kLane:
      return "lane";
    case PathStep::Reason::kDependency:
      return "dependency";
  }
  return "";
}

Json steps_json(std::span<const PathStep> path, const LoweredStep& step,
                const Simulation& simulation, const Cluster& cluster) {
  Json steps = Json::array();
  for (const PathStep& part : path) {
    const TaskLane& lane = step.graph.lanes()[step.graph.lane_of()[part.task]];
    steps.push_back({{"action", to_text(step.actions[part.task])},
                     {"device", cluster.devices[lane.device.index()].name},
                     {"lane", lane_name(lane.lane)},
                     {"start_ns", simulation.start[part.task].time_since_epoch().count()},
                     {"end_ns", simulation.end[part.task].time_since_epoch().count()},
                     {"reason", reason_name(part.reason)},
                     {"delay_ns", part.delay.count()}});
  }
  return steps;
}

}  // namespace

std::string print_idle_time(std::span<const DeviceTime> devices, const Cluster& cluster) {
  const std::vector<IdleRow> rows = list_idle_rows(devices, cluster);
  std::vector<std::string> names;
  std::vector<std::string> cells(devices.size());
  for (const Device& device : cluster.devices) names.push_back(device.name);
  for (std::size_t d = 0; d < devices.size(); ++d) cells[d] = time_json(devices[d]).dump();
  std::vector<AlikeRow> shown = fold_alike_rows(names, cells);
  const std::string folded = tell_folded(shown, devices.size());
  shown.push_back({rows.back().name, rows.size() - 1});
  std::vector<std::vector<std::string>> columns = {{"ms"}};
  for (const AlikeRow& row : shown) columns.back().push_back(row.name);
  for (const TimePart& column : kTimeParts) {
    const bool is_empty = (rows.back().time.*column.part).count() == 0;
    if (is_empty && column.part != &DeviceTime::compute) continue;
    columns.push_back({std::string(column.title)});
    for (const AlikeRow& row : shown) {
      const DeviceTime& time = rows[row.device].time;
      columns.back().push_back(cell(time.*column.part, total(time)));
    }
  }
  return set_columns(columns) + folded;
}

std::string idle_time_json(std::span<const DeviceTime> devices, const Cluster& cluster) {
  Json json = {{"devices", Json::array()}};
  const std::vector<IdleRow> rows = list_idle_rows(devices, cluster);
  for (const IdleRow& row : rows) {
    if (&row == &rows.back()) continue;
    Json device = {{"name", row.name}};
    device.update(time_json(row.time));
    json["devices"].push_back(device);
  }
  json["all"] = time_json(rows.back().time);
  return json.dump();
}

std::string print_critical_path(const PathShares& shares, const Cluster& cluster) {
  const std::string devices = list_devices(shares.of_device, cluster);
  return fmt::format("critical path {}: {}{}{}\n", to_text(total(shares)), list_kinds(shares),
                     devices.empty() ? "" : "; on ", devices);
}

std::string critical_path_json(std::span<const PathStep> path, const LoweredStep& step,
                               const Simulation& simulation, const Cluster& cluster) {
  const PathShares shares =
      share_out(path, step, simulation, static_cast<int>(cluster.devices.size()));
  Json compute = Json::object();
  for (std::size_t kind = 0; kind < shares.compute.size(); ++kind) {
    if (!is_compute(static_cast<ActionKind>(kind))) continue;
    compute[std::string(kind_name(static_cast<ActionKind>(kind))) + "_ns"] =
        shares.compute[kind].count();
  }
  Json devices = Json::array();
  for (std::size_t d = 0; d < shares.of_device.size(); ++d) {
    devices.push_back(
        {{"name", cluster.devices[d].name}, {"path_ns", shares.of_device[d].count()}});
  }
  const Json json = {{"length_ns", total(shares).count()},
                     {"compute", compute},
                     {"transfers_ns", shares.transfers.count()},
                     {"hops_ns", shares.hops.count()},
                     {"collectives_ns", shares.collectives.count()},
                     {"overheads_ns", shares.overheads.count()},
                     {"devices", devices},
                     {"steps", steps_json(path, step, simulation, cluster)}};
  return json.dump();
}

std::string print_explanation(const SimulatedStep& simulated, Setting setting) {
  const Cluster& cluster = setting.cluster();
  const auto& [step, simulation] = simulated;
  const auto devices = static_cast<int>(cluster.devices.size());
  const std::vector<Duration> prices = price_all(step.graph, setting).of_work;
  const std::vector<PathStep> path = find_critical_path(step.graph, simulation, prices);
  return print_idle_time(split_makespan(step, simulation, prices, devices), cluster) +
         print_critical_path(share_out(path, step, simulation, devices), cluster);
}

std::string explanation_json(const SimulatedStep& simulated, Setting setting) {
  const Cluster& cluster = setting.cluster();
  const auto& [step, simulation] = simulated;
  const auto devices = static_cast<int>(cluster.devices.size());
  const std::vector<Duration> prices = price_all(step.graph, setting).of_work;
  const std::vector<PathStep> path = find_critical_path(step.graph, simulation, prices);
  return fmt::format(R"({{"idle_time": {}, "critical_path": {}}})",
                     idle_time_json(split_makespan(step, simulation, prices, devices), cluster),
                     critical_path_json(path, step, simulation, cluster));
}

}  // namespace frazil
