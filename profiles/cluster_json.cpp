#include "profiles/cluster_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr int kClusterVersion = 1;
constexpr const char* kClusterFormat = "frazil.cluster";
constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

std::int64_t take_or(JsonFields& fields, const std::string& key, std::int64_t absent,
                     std::int64_t minimum, std::int64_t maximum) {
  const auto member = fields.optional(key);
  return member ? member->integer(minimum, maximum) : absent;
}

Duration take_duration(JsonFields& fields, const std::string& key) {
  return Duration{take_or(fields, key, 0, 0, kLargestQuantity)};
}

Link take_link(JsonFields& fields) {
  const Duration latency = take_duration(fields, "latency_ns");
  return {latency, {take_or(fields, "bandwidth_bytes_per_second", 0, 0, kAny)}};
}

class ClusterReader {
 public:
  Cluster read(const JsonCursor& root) {
    JsonFields fields(root);
    expect_format(fields, kClusterFormat, kClusterVersion);
    if (const auto provenance = fields.optional("provenance")) {
      cluster_.provenance = parse_provenance(*provenance);
    }
    for (const JsonCursor& host : fields.required("hosts").items()) read_host(host);
    const JsonCursor devices = fields.required("devices");
    for (const JsonCursor& device : devices.items()) read_device(device);
    if (cluster_.devices.empty()) devices.fail("no device", "at least one");
    if (const auto link = fields.optional("default_link")) {
      JsonFields link_fields(*link);
      cluster_.default_link = take_link(link_fields);
      link_fields.finish();
    }
    if (const auto classes = fields.optional("link_classes")) read_link_classes(*classes);
    if (const auto round = fields.optional("commit_round_ns")) {
      cluster_.commit_round = Duration{round->integer(0, kLargestQuantity)};
    }
    if (const auto links = fields.optional("links")) {
      for (const JsonCursor& link : links->items()) read_link(link);
    }
    fields.finish();
    for (const auto& [ends, link] : links_) {
      cluster_.links.push_back({ends.first, ends.second, link});
    }
    validate(cluster_, root.file());
    return std::move(cluster_);
  }

 private:
  void read_host(const JsonCursor& cursor) {
    JsonFields fields(cursor);
    const JsonCursor name = fields.required("name");
    if (name.text().empty()) name.fail(name.describe(), "a name");
    if (!hosts_.emplace(name.text(), HostId(hosts_.size())).second) {
      name.fail(name.describe() + " again", "names that differ");
    }
    cluster_.hosts.push_back({name.text(), {fields.required("memory_bytes").integer(0, kAny)}});
    fields.finish();
  }

  void read_device(const JsonCursor& cursor) {
    JsonFields fields(cursor);
    Device device;
    const JsonCursor name = fields.required("name");
    device.name = name.text();
    if (device.name.empty()) name.fail(name.describe(), "a name");
    if (!device_names_.insert(device.name).second) {
      name.fail(name.describe() + " again", "names that differ");
    }
    const JsonCursor host = fields.required("host");
    const auto place = hosts_.find(host.text());
    if (place == hosts_.end()) host.fail(host.describe(), "the name of a host");
    device.host = place->second;
    device.memory_limit = {fields.required("memory_limit_bytes").integer(0, kAny)};
    device.time_ppm = take_or(fields, "time_ppm", device.time_ppm, 1, kLargestTimePpm);
    device.action_overhead = take_duration(fields, "action_overhead_ns");
    device.step_overhead = take_duration(fields, "step_overhead_ns");
    if (const auto process = fields.optional("process")) read_process(*process, device);
    fields.finish();
    cluster_.devices.push_back(std::move(device));
  }

  void read_process(const JsonCursor& cursor, Device& device) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    device.process = ProcessId(static_cast<std::int32_t>(cursor.integer(0, kMost)));
    const auto [known, is_new] = host_of_process_.emplace(device.process, device.host);
    if (is_new || known->second == device.host) return;
    const std::string& host = cluster_.hosts[known->second.index()].name;
    cursor.fail(cursor.describe() + ", which is a process of host " + json_string(host),
                "every process on one host");
  }

  void read_link_classes(const JsonCursor& cursor) {
    JsonFields classes(cursor);
    for (const LinkClass each : kLinkClasses) {
      const auto link = classes.optional(std::string(name_of(each)));
      if (!link) continue;
      JsonFields fields(*link);
      cluster_.link_classes[each] = take_link(fields);
      fields.finish();
    }
    classes.finish();
  }

  void read_link(const JsonCursor& cursor) {
    JsonFields fields(cursor);
    const auto last = static_cast<std::int64_t>(cluster_.devices.size()) - 1;
    const auto take_end = [&](const JsonCursor& end) {
      return DeviceId(static_cast<std::int32_t>(end.integer(0, last)));
    };
    const DeviceId from = take_end(fields.required("from"));
    const JsonCursor to_field = fields.required("to");
    const DeviceId to = take_end(to_field);
    if (from == to) to_field.fail(to_field.describe(), "another device than the link's first");
    const Link link = take_link(fields);
    fields.finish();
    if (!links_.emplace(std::pair(from, to), link).second) {
      cursor.fail(fmt::format("the link from {} to {} again", from.value, to.value),
                  "each link once");
    }
  }

  Cluster cluster_;
  std::map<std::string, HostId> hosts_;
  std::set<std::string> device_names_;
  std::map<ProcessId, HostId> host_of_process_;
  std::map<std::pair<DeviceId, DeviceId>, Link> links_;
};

std::string link_members(const Link& link) {
  return fmt::format(R"("latency_ns": {}, "bandwidth_bytes_per_second": {})", link.latency.count(),
                     link.bandwidth.count);
}

std::string device_text(const Device& device, const Cluster& cluster) {
  const bool is_named = device.process != kUnnamedProcess;
  return fmt::format(R"({{"name": {}, "host": {}, "memory_limit_bytes": {}, "time_ppm": {}, )"
                     R"("action_overhead_ns": {}, "step_overhead_ns": {}{}}})",
                     json_string(device.name),
                     json_string(cluster.hosts.at(device.host.index()).name),
                     device.memory_limit.count, device.time_ppm, device.action_overhead.count(),
                     device.step_overhead.count(),
                     is_named ? fmt::format(R"(, "process": {})", device.process.value) : "");
}

// Returns the lines of the keys that a cluster which tells nothing of processes does not have.
std::string process_lines(const Cluster& cluster) {
  std::string lines;
  std::vector<std::string> classes;
  for (const LinkClass each : kLinkClasses) {
    const std::optional<Link>& link = cluster.link_classes[each];
    if (link) classes.push_back(fmt::format(R"("{}": {{{}}})", name_of(each), link_members(*link)));
  }
  if (!classes.empty()) {
    lines += fmt::format("  \"link_classes\": {{\n    {}\n  }},\n", fmt::join(classes, ",\n    "));
  }
  if (cluster.commit_round) {
    lines += fmt::format("  \"commit_round_ns\": {},\n", cluster.commit_round->count());
  }
  return lines;
}

// Returns a JSON list with one item per line.
std::string list_text(const std::vector<std::string>& items) {
  if (items.empty()) return "[]";
  return fmt::format("[\n    {}\n  ]", fmt::join(items, ",\n    "));
}

}  // namespace

Cluster parse_cluster(std::string_view text, const std::string& file) {
  return ClusterReader().read(parse_json(text, file));
}

std::string to_json(const Cluster& cluster) {
  std::vector<std::string> hosts;
  for (const Host& host : cluster.hosts) {
    hosts.push_back(fmt::format(R"({{"name": {}, "memory_bytes": {}}})", json_string(host.name),
                                host.memory.count));
  }
  std::vector<std::string> devices;
  for (const Device& device : cluster.devices) devices.push_back(device_text(device, cluster));
  std::vector<std::string> links;
  for (const DirectedLink& link : cluster.links) {
    links.push_back(fmt::format(R"({{"from": {}, "to": {}, {}}})", link.from.value, link.to.value,
                                link_members(link.link)));
  }
  return fmt::format(
      "{{\n"
      "  \"format\": \"{}\",\n"
      "  \"version\": {},\n"
      "  \"provenance\": {},\n"
      "  \"hosts\": {},\n"
      "  \"devices\": {},\n"
      "  \"default_link\": {{{}}},\n"
      "{}"
      "  \"links\": {}\n"
      "}}\n",
      kClusterFormat, kClusterVersion, to_json(cluster.provenance), list_text(hosts),
      list_text(devices), link_members(cluster.default_link), process_lines(cluster),
      list_text(links));
}

Cluster read_cluster(const std::filesystem::path& path) {
  return parse_cluster(read_text_file(path), path.string());
}

}  // namespace frazil
