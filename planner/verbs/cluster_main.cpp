// Implements frazil cluster: makes the file of a cluster that was not measured.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/prediction/answer_parts.h"
#include "planner/prediction/process_notes.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "profiles/cluster_json.h"
#include "profiles/cluster_presets.h"
#include "profiles/cluster_shape.h"
#include "profiles/import/measured_messages.h"
#include "profiles/quantity_text.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

constexpr const char* kAsGiven = "as given";

template <class Preset>
std::vector<std::string_view> names_of(std::span<const Preset> presets) {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets) names.push_back(preset.name);
  return names;
}

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  flags.add_options()                                         //
      ("devices", text_value("N"), "devices of the cluster")  //
      ("per-host", text_value("N"),
       "devices of a host; default: as many as the preset's hosts have, "
       "without a preset all")  //
      ("preset", known_value("NAME", names_of(all_device_presets())),
       "memory, host and links of a published device; help lists them with their sources")  //
      ("memory", text_value("SIZE"), "memory of a device, instead of the preset's")         //
      ("host-memory", text_value("SIZE"), "memory of a host; default: not told")            //
      ("within-bandwidth", text_value("RATE"),
       "one direction between two devices of a host, instead of the preset's")                 //
      ("within-latency", text_value("TIME"), "instead of the preset's, without a preset 0ms")  //
      ("within-messages", text_value("FILE"),
       "the link between two devices of a host as messages of each size were measured, such as "
       "nccl.jsonl of tests/gpu/run.sh")  //
      ("between-messages", text_value("FILE"),
       "the same of two devices of different hosts")  //
      ("between", known_value("NAME", names_of(all_link_presets())),
       "link between hosts; help lists them with their sources")  //
      ("between-bandwidth", text_value("RATE"),
       "one direction between devices of different hosts, instead of that of --between")        //
      ("between-latency", text_value("TIME"), "instead of that of --between, without one 0ms")  //
      ("procs", text_value("N"),
       "processes, neighbours together and equally many on each host; default: none are named")  //
      ("process-bandwidth", text_value("RATE"),
       "one direction between two devices of a process, instead of that within a host")  //
      ("process-latency", text_value("TIME"), "instead of that within a host")           //
      ("commit-round", text_value("TIME"),
       "what a step over processes waits before its updates; default: 0.05ms, not written")  //
      ("out", text_value("FILE"), "write the cluster")                                       //
      ("json", po::bool_switch(), "answer in JSON");
  return flags;
}

std::string rate_text(BytesPerSecond rate) {
  return fmt::format("{:g} GB/s", static_cast<double>(rate.count) / 1e9);
}

std::string link_text(const Link& link) {
  return fmt::format("{}, {}", rate_text(link.bandwidth), to_text(link.latency));
}

std::string list_presets() {
  std::string text = fmt::format("{:<15} {:>8} {:>9}  {}\n", "--preset", "memory", "per host",
                                 "two devices of a host");
  for (const DevicePreset& preset : all_device_presets()) {
    text +=
        fmt::format("{:<15} {:>5} GB {:>9}  {}\n", preset.name, preset.memory.count / 1'000'000'000,
                    preset.per_host, link_text(preset.within));
  }
  text += fmt::format("\n{:<15} {}\n", "--between", "devices of different hosts");
  for (const LinkPreset& preset : all_link_presets()) {
    text += fmt::format("{:<15} {}\n", preset.name, link_text(preset.link));
  }
  text += "\nsources\n";
  std::set<std::string_view> of_latency;
  const auto tell = [&](const auto& preset) {
    text += fmt::format("{:<15} {}\n", preset.name, preset.source);
    of_latency.insert(preset.latency_source);
  };
  for (const DevicePreset& preset : all_device_presets()) tell(preset);
  for (const LinkPreset& preset : all_link_presets()) tell(preset);
  for (const std::string_view source : of_latency) {
    text += fmt::format("{:<15} {}\n", "latency", source);
  }
  return text;
}

// Returns the preset that the flag names, none if it is not given.
template <class Preset>
const Preset* find_preset(const Flags& values, const std::string& flag,
                          std::span<const Preset> presets) {
  if (values.count(flag) == 0) return nullptr;
  const std::string name = known_name("--" + flag, required_text(values, flag), names_of(presets));
  return &*std::find_if(presets.begin(), presets.end(),
                        [&](const Preset& preset) { return preset.name == name; });
}

// Takes a link as its messages were measured, and says how far it is off.
void take_messages(const std::string& file, const std::string& which, Link& link,
                   Provenance& sources) {
  const MeasuredMessages measured = read_measured_messages(file);
  const FittedLink fitted = fit_link(measured.messages);
  link = fitted.link;
  std::string told = fmt::format("{} times of messages in {}, each within {:.0f} %",
                                 measured.messages.size(), file, 100 * fitted.worst_error);
  if (!measured.all_reduces.empty()) {
    const SizedTime& largest = measured.all_reduces.back();
    const double ratio = static_cast<double>(price_pair_reduce(link, largest.bytes).count()) /
                         static_cast<double>(largest.time.count());
    told += fmt::format("; an all-reduce of {} predicted / measured {:.2f}",
                        to_text(Bytes{largest.bytes}), ratio);
  }
  sources[which + "_bandwidth"] = sources[which + "_latency"] = std::move(told);
}

// Takes what is given of a link, and notes it beside the sources of the preset's.
void take_link(const Flags& values, const std::string& which, Link& link, Provenance& sources) {
  if (values.count(which + "-messages") > 0) {
    take_messages(required_text(values, which + "-messages"), which, link, sources);
  }
  if (const auto rate = optional_text(values, which + "-bandwidth")) {
    link.bandwidth = parse_bandwidth(*rate, "--" + which + "-bandwidth");
    sources[which + "_bandwidth"] = kAsGiven;
  }
  if (values.count(which + "-latency") > 0) {
    link.latency = duration_or(values, which + "-latency", link.latency);
    sources[which + "_latency"] = kAsGiven;
  }
}

void take_preset(const DevicePreset& preset, ClusterShape& shape) {
  shape.memory = preset.memory;
  shape.per_host = preset.per_host;
  shape.within = preset.within;
  shape.provenance["preset"] = preset.name;
  shape.provenance["memory"] = preset.source;
  shape.provenance["within_bandwidth"] = preset.source;
  shape.provenance["within_latency"] = preset.latency_source;
}

void take_between(const LinkPreset& preset, ClusterShape& shape) {
  shape.between = preset.link;
  shape.provenance["between"] = preset.name;
  shape.provenance["between_bandwidth"] = preset.source;
  shape.provenance["between_latency"] = preset.latency_source;
}

ClusterShape read_shape(const Flags& values) {
  ClusterShape shape;
  shape.devices = required_integer(values, "devices", 1, kMostDevices);
  shape.per_host = shape.devices;
  const auto* const preset = find_preset(values, "preset", all_device_presets());
  if (preset != nullptr) take_preset(*preset, shape);
  shape.per_host = integer_or(values, "per-host", shape.per_host, 1, kMostDevices);
  if (const auto memory = optional_text(values, "memory")) {
    shape.memory = parse_bytes(*memory, "--memory");
    shape.provenance["memory"] = kAsGiven;
  } else if (preset == nullptr) {
    refuse_flags("neither --preset nor --memory", "one of them");
  }
  if (const auto memory = optional_text(values, "host-memory")) {
    shape.host_memory = parse_bytes(*memory, "--host-memory");
    shape.provenance["host_memory"] = kAsGiven;
  }
  take_link(values, "within", shape.within, shape.provenance);
  const bool has_neighbours = shape.devices > 1 && shape.per_host > 1;
  if (has_neighbours && shape.within.bandwidth.count == 0) {
    refuse_flags("neither --preset nor --within-bandwidth", "one of them");
  }
  const auto* const between = find_preset(values, "between", all_link_presets());
  shape.provenance["source"] = preset != nullptr || between != nullptr
                                   ? "frazil cluster: published figures, not measured"
                                   : "frazil cluster: figures as given, not measured";
  if (shape.devices <= shape.per_host) {
    refuse_together(values, "all devices on one host",
                    {"between", "between-bandwidth", "between-latency", "between-messages"});
    return shape;
  }
  if (between != nullptr) take_between(*between, shape);
  take_link(values, "between", shape.between, shape.provenance);
  if (shape.between.bandwidth.count == 0) {
    refuse_flags(fmt::format("{} without --between",
                             count_of(divide_up(shape.devices, shape.per_host), "host")),
                 "a name that frazil cluster --between help lists, or --between-bandwidth");
  }
  return shape;
}

// Reads what is said of processes.
void read_processes(const Flags& values, ClusterShape& shape) {
  const auto processes = optional_integer(values, "procs", 1, kMostDevices);
  if (!processes) {
    for (const char* flag : {"process-bandwidth", "process-latency", "commit-round"}) {
      if (values.count(flag) > 0) refuse_flags(fmt::format("--{} without --procs", flag), "both");
    }
    return;
  }
  shape.processes = *processes;
  if (values.count("commit-round") > 0) {
    shape.commit_round = duration_or(values, "commit-round", {});
    shape.provenance["commit_round"] = kAsGiven;
  }
  Link in_process = shape.within;
  take_link(values, "process", in_process, shape.provenance);
  if (in_process != shape.within) shape.in_process = in_process;
}

std::string print_cluster(const ClusterShape& shape, const Cluster& cluster) {
  const auto hosts = static_cast<std::int64_t>(cluster.hosts.size());
  std::string text = fmt::format("{} of {} on {}\n", count_of(shape.devices, "device"),
                                 to_text(shape.memory), count_of(hosts, "host"));
  if (shape.per_host > 1) text += fmt::format("within a host      {}\n", link_text(shape.within));
  if (hosts > 1) text += fmt::format("between hosts      {}\n", link_text(shape.between));
  for (const auto& [what, source] : cluster.provenance) {
    text += fmt::format("{:<18} {}\n", what, source);
  }
  return text + list_processes(cluster);
}

std::string cluster_answer_json(const ClusterShape& shape, const Cluster& cluster) {
  const auto link = [](const Link& link) {
    return nlohmann::ordered_json{{"latency_ns", link.latency.count()},
                                  {"bandwidth_bytes_per_second", link.bandwidth.count}};
  };
  nlohmann::ordered_json json = {{"devices", shape.devices},
                                 {"hosts", cluster.hosts.size()},
                                 {"memory_limit_bytes", shape.memory.count},
                                 {"within", link(shape.within)}};
  if (cluster.hosts.size() > 1) json["between"] = link(shape.between);
  json["provenance"] = cluster.provenance;
  json.update(nlohmann::ordered_json::parse(processes_json(cluster)));
  return json.dump() + "\n";
}

ExitCode cluster_verb(const Flags& values) {
  const std::vector<std::string> words = text_list(values, "word");
  for (const std::string& word : words) known_name("", word, std::vector<std::string_view>{"help"});
  const bool asks_list = !words.empty() || optional_text(values, "preset") == "help" ||
                         optional_text(values, "between") == "help";
  if (asks_list) {
    print_answer(list_presets());
    return ExitCode::kOk;
  }
  const std::string out = required_text(values, "out");
  refuse_overwriting({}, {{"--out", out}});
  ClusterShape shape = read_shape(values);
  read_processes(values, shape);
  const Cluster cluster = make_cluster(shape);
  write_and_answer(
      [&] { write_text_file(out, to_json(cluster)); },
      is_set(values, "json") ? cluster_answer_json(shape, cluster) : print_cluster(shape, cluster));
  return ExitCode::kOk;
}

int run_cluster_verb(int argc, char** argv) {
  const Verb verb{"cluster",
                  "Makes the file of a cluster of equal devices, from published figures or given "
                  "ones.",
                  "frazil cluster --devices N --preset NAME [--between NAME] --out FILE\n"
                  "   or: frazil cluster --devices N --memory SIZE --within-bandwidth RATE --out "
                  "FILE\n"
                  "   or: frazil cluster help",
                  "word"};
  return run_verb(verb, argc, argv, describe_flags(), cluster_verb);
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_cluster_verb(argc, argv); }
