#include "planner/prediction/process_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "planner/plan/commit_round.h"
#include "profiles/processes.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostListed = 8;  // processes, and devices of one
constexpr const char* kMargin = "             ";

struct OneProcess {
  HostId host;
  ProcessId process;
  std::vector<DeviceId> devices;
};

// Returns the processes in the order of hosts and numbers.
std::vector<OneProcess> find_processes(const Cluster& cluster) {
  std::map<std::pair<HostId, ProcessId>, std::vector<DeviceId>> devices;
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    const Device& device = cluster.devices[d];
    devices[{device.host, device.process}].emplace_back(d);
  }
  std::vector<OneProcess> processes;
  for (auto& [key, own] : devices) processes.push_back({key.first, key.second, std::move(own)});
  return processes;
}

bool tells_classes(const Cluster& cluster) {
  return !cluster.link_classes.empty() || count_processes(cluster) > 1;
}

std::string list_devices(const OneProcess& process, const Cluster& cluster) {
  const auto name = [&](DeviceId device) { return cluster.devices[device.index()].name; };
  const std::size_t count = process.devices.size();
  if (count > kMostListed) {
    return fmt::format("{} to {}, {} devices", name(process.devices.front()),
                       name(process.devices.back()), count);
  }
  std::string text;
  for (const DeviceId device : process.devices) text += (text.empty() ? "" : ", ") + name(device);
  return text;
}

std::string_view words_of(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::kProcess:
      return "in a process";
    case LinkClass::kHost:
      return "to another process of the host";
    case LinkClass::kNetwork:
      return "to another host";
  }
  return "";
}

std::string rate_text(BytesPerSecond rate) {
  if (rate.count == 0) return "unlimited";
  return fmt::format("{:g} GB/s", static_cast<double>(rate.count) / 1e9);
}

PairCounts count_listed(const Cluster& cluster) {
  PairCounts listed{};
  for (const DirectedLink& link : cluster.links) {
    ++listed[static_cast<std::size_t>(cluster.class_of(link.from, link.to))];
  }
  return listed;
}

std::string list_links(const Cluster& cluster) {
  const PairCounts pairs = count_pairs(cluster, all_devices(cluster));
  const PairCounts listed = count_listed(cluster);
  std::int64_t all = 0;
  for (const std::int64_t count : pairs) all += count;
  std::string text;
  for (const LinkClass each : kLinkClasses) {
    const std::int64_t count = pairs[static_cast<std::size_t>(each)];
    const std::int64_t own = listed[static_cast<std::size_t>(each)];
    if (count == 0) continue;
    const Link& usual = cluster.usual_link(each);
    text += fmt::format("{}{} of {} {}: ", text.empty() ? "links        " : kMargin, count, all,
                        words_of(each));
    if (own < count) {
      text += fmt::format("{}, {}", to_text(usual.latency), rate_text(usual.bandwidth));
    }
    if (own > 0) text += fmt::format("{}{} listed", own < count ? "; " : "", own);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string list_processes(const Cluster& cluster) {
  if (!tells_classes(cluster)) return "";
  const std::vector<OneProcess> processes = find_processes(cluster);
  std::string text;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    text += p == 0 ? "processes    " : kMargin;
    if (p + 1 == kMostListed && processes.size() > kMostListed) {
      text += fmt::format("and {} more\n", processes.size() - p);
      break;
    }
    const OneProcess& own = processes[p];
    const bool is_named = own.process != kUnnamedProcess;
    text += fmt::format("{}{}: {}\n", is_named ? fmt::format("{} on ", own.process.value) : "",
                        cluster.hosts[own.host.index()].name, list_devices(own, cluster));
  }
  return text + list_links(cluster);
}

std::string list_commit_rounds(std::span<const Plan* const> plans, const Cluster& cluster) {
  const bool commits = std::any_of(plans.begin(), plans.end(), [&](const Plan* plan) {
    return find_commit_round(*plan, cluster).has_value();
  });
  const bool ends = std::any_of(plans.begin(), plans.end(), [&](const Plan* plan) {
    return ends_with_a_process(*plan, cluster);
  });
  const bool is_one = plans.size() == 1;
  std::string text;
  if (commits) {
    text += fmt::format("commit round {} before the updates{}\n", to_text(commit_round_of(cluster)),
                        is_one ? "" : " of a plan over several processes");
    if (!cluster.commit_round) {
      text += "note: the commit round is a default: the cluster has no commit_round_ns\n";
    }
  }
  if (ends) {
    text += fmt::format(
        "note: {} among the backwards, without a commit round: a process that is lost ends such a "
        "run\n",
        is_one ? "the plan updates" : "some plans update");
  }
  return text;
}

std::string processes_json(const Cluster& cluster) {
  if (!tells_classes(cluster)) return "{}";
  Json processes = Json::array();
  for (const OneProcess& own : find_processes(cluster)) {
    Json process = Json::object();
    if (own.process != kUnnamedProcess) process["process"] = own.process.value;
    process["host"] = cluster.hosts[own.host.index()].name;
    for (const DeviceId device : own.devices) process["devices"].push_back(device.value);
    processes.push_back(process);
  }
  Json links = Json::object();
  const PairCounts pairs = count_pairs(cluster, all_devices(cluster));
  const PairCounts listed = count_listed(cluster);
  for (const LinkClass each : kLinkClasses) {
    const auto at = static_cast<std::size_t>(each);
    if (pairs[at] == 0) continue;
    const Link& usual = cluster.usual_link(each);
    links[std::string(name_of(each))] = {{"pairs", pairs[at]},
                                         {"listed", listed[at]},
                                         {"latency_ns", usual.latency.count()},
                                         {"bandwidth_bytes_per_second", usual.bandwidth.count}};
  }
  return Json{{"processes", processes}, {"links", links}}.dump();
}

std::string commit_round_json(const Plan& plan, const Cluster& cluster) {
  Json json = Json::object();
  if (const auto round = find_commit_round(plan, cluster)) {
    json["commit_round_ns"] = round->count();
    json["commit_round_is_default"] = !cluster.commit_round.has_value();
  }
  if (ends_with_a_process(plan, cluster)) json["lost_process_ends_run"] = true;
  return json.dump();
}

std::string with_commit_rounds(std::string answer, std::span<const Plan* const> plans,
                               const Cluster& cluster) {
  Json said = Json::object();
  for (const Plan* plan : plans) said.update(Json::parse(commit_round_json(*plan, cluster)));
  if (said.empty()) return answer;
  Json json = Json::parse(answer);
  json.update(said);
  return json.dump() + "\n";
}

}  // namespace frazil
