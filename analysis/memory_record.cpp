#include "analysis/memory_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/memory_unit.h"
#include "profiles/json.h"
#include "profiles/quantity_text.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "frazil.memory";
constexpr int kVersion = 1;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::string kind_name(std::size_t kind) {
  return std::string(memory_kind_name(static_cast<MemoryKind>(kind)));
}

Json peaks_of(const HeldMemory& held) {
  Json json = {{"peak_bytes", held.peak.count}};
  for (std::size_t k = 0; k < held.kinds.size(); ++k) {
    json[kind_name(k) + "_bytes"] = held.kinds[k].count;
  }
  return json;
}

Json curve_of(const HeldMemory& held) {
  Json curve = Json::array();
  for (const MemoryMoment& moment : held.curve) {
    curve.push_back({moment.at.time_since_epoch().count(), moment.total.count});
  }
  return curve;
}

Json device_json(const DeviceMemory& device) {
  Json json = {{"name", device.name}};
  if (device.limit) json["limit_bytes"] = device.limit->count;
  json["predicted"] = peaks_of(device.predicted);
  json["measured"] = peaks_of(device.measured);
  json["measured"]["allocator_peak_bytes"] = device.allocator_peak.count;
  return json;
}

Bytes take_bytes(JsonFields& fields, const std::string& key) {
  return Bytes{fields.required(key).integer(0, kMost)};
}

HeldMemory parse_held(JsonFields& fields) {
  HeldMemory held;
  held.peak = take_bytes(fields, "peak_bytes");
  for (std::size_t k = 0; k < held.kinds.size(); ++k) {
    held.kinds[k] = take_bytes(fields, kind_name(k) + "_bytes");
  }
  TimePoint before;
  for (const JsonCursor& moment : fields.required("curve").items()) {
    const JsonItems pair = moment.items();
    if (pair.size() != 2) moment.fail(moment.describe(), "[ns, bytes]");
    const TimePoint at{Duration{pair[0].integer(before.time_since_epoch().count(), kMost)}};
    held.curve.push_back({at, Bytes{pair[1].integer(0, kMost)}});
    before = at;
  }
  return held;
}

DeviceMemory parse_device(const JsonCursor& object) {
  DeviceMemory device;
  JsonFields fields(object);
  device.name = fields.required("name").text();
  if (const auto limit = fields.optional("limit_bytes"))
    device.limit = Bytes{limit->integer(0, kMost)};
  JsonFields predicted(fields.required("predicted"));
  device.predicted = parse_held(predicted);
  predicted.finish();
  JsonFields measured(fields.required("measured"));
  device.measured = parse_held(measured);
  device.allocator_peak = take_bytes(measured, "allocator_peak_bytes");
  measured.finish();
  fields.finish();
  return device;
}

std::string ratio_text(Bytes predicted, Bytes measured) {
  if (measured.count == 0) return "-";
  return fmt::format("{:.3f}",
                     static_cast<double>(predicted.count) / static_cast<double>(measured.count));
}

void add_row(const DeviceMemory& device, const std::string& what, Bytes predicted, Bytes measured,
             Table& table) {
  if (predicted.count == 0 && measured.count == 0) return;
  table.rows.push_back(
      {device.name, what, to_text(predicted), to_text(measured), ratio_text(predicted, measured)});
}

// Writes both in one unit, so that they can be compared.
std::string pair_text(Bytes predicted, Bytes measured) {
  if (predicted == measured) return to_text(predicted);
  const MemoryUnit unit = choose_unit(std::min(predicted, measured));
  return fmt::format("{:.2f} / {:.2f} {}", static_cast<double>(predicted.count) / unit.bytes,
                     static_cast<double>(measured.count) / unit.bytes, unit.word);
}

bool holds_any(const std::vector<std::pair<Step, const MemoryRecord*>>& phases, std::size_t kind) {
  for (const auto& [step, record] : phases) {
    for (const DeviceMemory& device : record->devices) {
      if (device.predicted.kinds[kind].count + device.measured.kinds[kind].count > 0) return true;
    }
  }
  return false;
}

}  // namespace

MemoryRecord predict_memory(const SimulatedStep& step, Setting setting) {
  const Cluster& cluster = setting.cluster();
  const auto traces = simulate_memory(step.lowered.graph, setting);
  MemoryRecord record;
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    DeviceMemory& device = record.devices.emplace_back();
    device.name = cluster.devices[d].name;
    if (cluster.devices[d].memory_limit.count < kMost) {
      device.limit = cluster.devices[d].memory_limit;
    }
    device.predicted = {step.simulation.memory[d].total, traces[d].most, traces[d].curve};
  }
  return record;
}

std::string to_json(const MemoryRecord& record) {
  const Json head = {{"format", kFormat},
                     {"version", kVersion},
                     {"step", record.step},
                     {"process_peak_resident_bytes", record.process_peak_resident.count}};
  // Each device has one line, for curves are long.
  std::string text = head.dump();
  text.back() = ',';
  text += "\n\"devices\": [";
  for (const DeviceMemory& device : record.devices) {
    Json json = device_json(device);
    json["predicted"]["curve"] = curve_of(device.predicted);
    json["measured"]["curve"] = curve_of(device.measured);
    text += (&device == &record.devices.front() ? "\n" : ",\n") + json.dump();
  }
  return text + "\n]}\n";
}

MemoryRecord parse_memory_record(std::string_view text, const std::string& file) {
  MemoryRecord record;
  JsonFields fields(parse_json(text, file));
  expect_format(fields, kFormat, kVersion);
  record.step = fields.required("step").integer(0, kMost);
  record.process_peak_resident = take_bytes(fields, "process_peak_resident_bytes");
  for (const JsonCursor& device : fields.required("devices").items()) {
    record.devices.push_back(parse_device(device));
  }
  fields.finish();
  return record;
}

std::optional<MemoryRecord> read_memory_record(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  return parse_memory_record(read_text_file(path), path.string());
}

std::string peaks_json(const MemoryRecord& record) {
  Json json = {{"step", record.step},
               {"process_peak_resident_bytes", record.process_peak_resident.count},
               {"devices", Json::array()}};
  for (const DeviceMemory& device : record.devices) json["devices"].push_back(device_json(device));
  return json.dump();
}

Table tabulate_memory(const MemoryRecord& record) {
  Table table{.header = {"device", "memory", "predicted", "measured", "ratio"}, .rows = {}};
  for (const DeviceMemory& device : record.devices) {
    for (std::size_t k = 0; k < device.measured.kinds.size(); ++k) {
      add_row(device, kind_name(k), device.predicted.kinds[k], device.measured.kinds[k], table);
    }
    add_row(device, "peak total", device.predicted.peak, device.measured.peak, table);
    if (device.allocator_peak.count == 0) continue;
    add_row(device, "allocator at most", device.predicted.peak, device.allocator_peak, table);
  }
  table.rows.push_back(
      {"process", "resident at most", "-", to_text(record.process_peak_resident), "-"});
  return table;
}

Table tabulate_memory(const std::vector<std::pair<Step, const MemoryRecord*>>& phases) {
  Table table{.header = {"from step", "device"}, .rows = {}};
  std::vector<std::size_t> kinds;
  for (std::size_t k = 0; k < kMemoryKinds; ++k) {
    if (!holds_any(phases, k)) continue;
    kinds.push_back(k);
    table.header.push_back(kind_name(k));
  }
  table.header.insert(table.header.end(), {"peak total", "allocator"});
  for (const auto& [step, record] : phases) {
    for (const DeviceMemory& device : record->devices) {
      std::vector<std::string>& row = table.rows.emplace_back();
      row = {fmt::format("{}", step), device.name};
      for (const std::size_t k : kinds) {
        row.push_back(pair_text(device.predicted.kinds[k], device.measured.kinds[k]));
      }
      row.push_back(pair_text(device.predicted.peak, device.measured.peak));
      row.push_back(to_text(device.allocator_peak));
    }
  }
  return table;
}

}  // namespace frazil
