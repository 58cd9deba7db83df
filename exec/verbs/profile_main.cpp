// frazil profile: times every layer of a model inside real training steps on this machine.

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/foreign_cores.h"
#include "analysis/tables/table.h"
#include "exec/measuring/fixed.h"
#include "exec/profile/profiler.h"
#include "exec/train/processes/launched_run.h"
#include "exec/train/processes/probe_processes.h"
#include "exec/train/progress.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/kernels_flag.h"
#include "planner/verbs/known_words.h"
#include "profiles/cluster_json.h"
#include "profiles/error.h"
#include "profiles/model_profile_json.h"
#include "profiles/quantity_text.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  flags.add_options()                                                                        //
      ("run", text_value("FILE"), "run configuration: model, data, optimizer")               //
      ("device", known_value("KIND", kDeviceWords), "what they are: cpu (default) or cuda")  //
      ("gpus", text_value("LIST"),
       "with --device cuda: which GPUs, as 0,1; devices take them in turn; default: all")  //
      ("devices", text_value("N"), "devices to use; default: one per core or GPU")         //
      ("micro-batch", text_value("LIST"), "sizes, a comma list; default: the run's own")   //
      ("precision", known_value("TYPE", kPrecisionNames),
       "the layers compute in: fp32 or bf16; default: the run's own")  //
      ("memory-limit", text_value("SIZE"),
       "of each device, such as 8MiB; default: 1TiB, of GPUs their own")  //
      ("rounds", text_value("N"), "rounds over the sizes, default 12")    //
      ("steps", text_value("N"), "steps per round and size, default 8")   //
      ("seed", text_value("N"), "instead of the run's own")               //
      ("out", text_value("FILE"), "write the model profile")              //
      ("cluster-out", text_value("FILE"), "write the cluster")            //
      ("probe-links", po::bool_switch(),
       "also measure messages and commits between two processes, for the cluster")  //
      ("listen", text_value("ADDRESS:PORT"),
       "with --probe-links: wait here for one process that is to be the other one of the two")  //
      ("join", text_value("ADDRESS:PORT"),
       "be the other process of a frazil profile --listen; no other flag but --token-file")  //
      ("token-file", text_value("FILE"),
       "32 random bytes, mode 0600, that prove who belongs together beyond this host")  //
      ("quiet", po::bool_switch(), "no progress")                                       //
      ("json", po::bool_switch(), "answer in JSON");
  add_kernels_flag(flags);
  return flags;
}

std::string milliseconds(Duration duration) { return fixed(to_ms(duration), 3); }

// Returns a line for each layer whose I took as long as its whole backward: the difference, W, then
// is 0, though the layer has weights.
std::string list_lost_weights(const ModelProfile& profile) {
  std::string text;
  for (const Layer& layer : profile.layers) {
    for (const CostSample& cost : layer.costs) {
      if (cost.backward_weight.count() > 0 || layer.trainable().count == 0) continue;
      text += "note: W of " + to_one_line(layer.name) + " at " +
              std::to_string(cost.micro_batch_size) +
              " samples is 0 within noise: I alone took as long as I and W together; more --rounds "
              "tell them apart\n";
    }
  }
  return text;
}

std::string tell_precision(const ModelProfile& profile) {
  if (profile.precision == Precision::kFp32) return "";
  return "the layers computed in " + std::string(name_of(profile.precision)) + "\n";
}

std::string print_profile(const MeasuredProfile& measured) {
  Table table{{"layer", "micro-batch", "F ms", "F frozen ms", "I ms", "W ms", "W alone ms", "U ms",
               "stash", "parameters"},
              {}};
  for (const Layer& layer : measured.profile.layers) {
    for (const CostSample& cost : layer.costs) {
      table.rows.push_back({layer.name, std::to_string(cost.micro_batch_size),
                            milliseconds(cost.forward), milliseconds(cost.forward_frozen),
                            milliseconds(cost.backward_input), milliseconds(cost.backward_weight),
                            milliseconds(cost.backward_weight_alone), milliseconds(layer.update),
                            to_text(cost.stash), to_text(layer.parameters)});
    }
  }
  const Device& device = measured.cluster.devices[0];
  return to_text(table) + "each action + " + milliseconds(device.action_overhead) +
         " ms, each step + " + milliseconds(device.step_overhead) + " ms, hop " +
         milliseconds(measured.cluster.default_link.latency) + " ms, link " +
         to_text(Bytes{measured.cluster.default_link.bandwidth.count}) + "/s\n" +
         list_lost_weights(measured.profile) + tell_precision(measured.profile);
}

std::string to_rate_text(const MessageTime& message) {
  if (message.bytes == 0) return "";
  const double rate = static_cast<double>(message.bytes) /
                      static_cast<double>(std::max<Duration::rep>(1, message.one_way.count()));
  return ", " + fixed(rate, 2) + " GB/s";
}

std::string words_of(LinkClass link_class) {
  return link_class == LinkClass::kNetwork ? "processes of two hosts" : "processes of one host";
}

// Returns the sizes and times of messages, as "0 B 0.004 ms; 1 KiB 0.005 ms, 0.20 GB/s; ...".
std::string list_messages(const ProcessProbe& probe) {
  std::string text;
  for (const MessageTime& message : probe.messages) {
    text += (text.empty() ? "" : "; ") + to_text(Bytes{message.bytes}) + " " +
            milliseconds(message.one_way) + " ms" + to_rate_text(message);
  }
  return text;
}

std::string print_probe(const ProcessProbe& probe) {
  Table table{{"message", "one way ms", "GB/s"}, {}};
  for (const MessageTime& message : probe.messages) {
    const std::string rate = to_rate_text(message);
    table.rows.push_back({to_text(Bytes{message.bytes}), milliseconds(message.one_way),
                          rate.empty() ? "" : rate.substr(2, rate.size() - 7)});
  }
  const bool is_host = probe.link_class == LinkClass::kHost;
  return "\nbetween " + words_of(probe.link_class) + ":\n" + to_text(table) + "hop " +
         milliseconds(probe.link.latency) + " ms, link " +
         to_text(Bytes{probe.link.bandwidth.count}) + "/s as reductions see it, commit round " +
         milliseconds(probe.commit_round) + " ms\n" +
         (is_host ? "note: links between hosts were not measured; processes of two hosts do that, "
                    "with --listen and --join\n"
                  : "");
}

// Writes what was measured where plan and simulate look for it.
void add_links(const ProcessProbe& probe, Cluster& cluster) {
  cluster.link_classes[LinkClass::kProcess] = cluster.default_link;
  cluster.link_classes[probe.link_class] = probe.link;
  cluster.commit_round = probe.commit_round;
  cluster.provenance["messages between " + words_of(probe.link_class)] = list_messages(probe);
}

std::string to_answer(const MeasuredProfile& measured) {
  const nlohmann::ordered_json answer{
      {"profile", nlohmann::ordered_json::parse(to_json(measured.profile))},
      {"cluster", nlohmann::ordered_json::parse(to_json(measured.cluster))}};
  return answer.dump(2) + "\n";
}

void tell_foreign_load(const MeasuredProfile& measured) {
  if (measured.foreign_cores.value_or(0) <= kMostForeignCores) return;
  std::fprintf(stderr,
               "frazil profile: other programs kept %s cores busy meanwhile, so these times may be "
               "too long\n",
               fixed(*measured.foreign_cores, 2).c_str());
}

void choose_precision(const po::variables_map& flags, RunConfig& config) {
  const auto word = optional_text(flags, "precision");
  if (!word) return;
  const bool is_bf16 = known_name("--precision", *word, kPrecisionNames) == "bf16";
  config.precision = is_bf16 ? Precision::kBf16 : Precision::kFp32;
}

void tell_person(const std::string& sentence) {
  std::fprintf(stderr, "frazil profile: %s\n", to_one_line(sentence).c_str());
}

// Waits for the other process where flags or a launcher say that there is one.
std::optional<JoinedWorld> find_launch(const po::variables_map& flags, const std::string& command) {
  const bool probes = flags["probe-links"].as<bool>();
  if (!probes && flags.count("listen") > 0) refuse_flags("--listen without --probe-links", "both");
  refuse_beside_join(flags, {"probe-links", "token-file", "kernels"});
  LaunchFlags launch;
  launch.listen = optional_text(flags, "listen").value_or("");
  launch.join = optional_text(flags, "join").value_or("");
  if (!launch.listen.empty()) launch.processes = 2;
  if (launch.listen.empty() && launch.join.empty()) return std::nullopt;
  return join_launch(launch, command, optional_text(flags, "token-file").value_or(""),
                     /*may_grow=*/false, tell_person);
}

ExitCode run_profile(const po::variables_map& flags, const std::string& command) {
  std::optional<JoinedWorld> joined_world = find_launch(flags, command);
  if (joined_world && !joined_world->leads()) {
    return serve_joined(*joined_world, tell_person).value_or(ExitCode::kPeerLost);
  }
  JoinedWorld* const joined = joined_world ? &*joined_world : nullptr;
  RunConfig config = read_config(flags);
  choose_precision(flags, config);
  const Dataset data = load_data(config);
  refuse_larger_batch(config, data, required_text(flags, "run"));
  ProfileOptions options;
  options.command = command;
  options.processors = read_processors(flags);
  options.devices = integer_or(flags, "devices", count_devices(options.processors), 1, 1024);
  options.micro_batch_sizes = {config.micro_batch_size};
  if (const auto sizes = optional_text(flags, "micro-batch")) {
    options.micro_batch_sizes = checked_flags("--micro-batch", *sizes, 1, kMostCounted);
  }
  if (const auto limit = optional_text(flags, "memory-limit")) {
    options.memory_limit = parse_bytes(*limit, "--memory-limit");
  }
  options.rounds = integer_or(flags, "rounds", options.rounds, 1, kMostCounted);
  options.steps = integer_or(flags, "steps", options.steps, 2, kMostCounted);
  std::vector<NamedFile> inputs = named_files(flags, {"run"});
  if (!config.data.path.empty()) inputs.push_back({"the data", config.data.path});
  refuse_overwriting(inputs, named_files(flags, {"out", "cluster-out"}));
  for (const char* const flag : {"out", "cluster-out"}) {
    if (const auto file = optional_text(flags, flag)) check_output_file(*file);
  }
  const bool quiet = flags["quiet"].as<bool>();
  options.model_check = check_model_file("profile", config, quiet);
  check_machine("profile", options.processors, options.devices, quiet);
  std::optional<ProcessProbe> probe;
  if (flags["probe-links"].as<bool>()) {
    probe = probe_processes(config, data, options.processors, joined, tell_person);
  }
  MeasuredProfile measured;
  {
    Progress progress("profile", options.rounds + 1, quiet, "rounds");
    measured =
        measure_profile(config, data, options, [&](int done, int) { progress.update(done, ""); });
  }
  if (probe) add_links(*probe, measured.cluster);
  if (!quiet) tell_foreign_load(measured);
  const auto write = [&] {
    std::vector<NewFile> files;
    if (const auto path = optional_text(flags, "out")) {
      files.push_back({*path, to_json(measured.profile)});
    }
    if (const auto path = optional_text(flags, "cluster-out")) {
      files.push_back({*path, to_json(measured.cluster)});
    }
    write_text_files(files);
  };
  write_and_answer(write, flags["json"].as<bool>()
                              ? to_answer(measured)
                              : print_profile(measured) + (probe ? print_probe(*probe) : ""));
  return ExitCode::kOk;
}

int run_profile_verb(int argc, char** argv) {
  const Verb verb{"profile", "Times every layer of a model inside real training steps.",
                  "frazil profile --run FILE [--out model.json] [--cluster-out cluster.json]"};
  const std::string command = command_text(argc, argv);
  return run_verb(verb, argc, argv, describe_flags(), [&](const po::variables_map& flags) {
    return run_with_torch(flags, [&] { return run_profile(flags, command); });
  });
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_profile_verb(argc, argv); }
