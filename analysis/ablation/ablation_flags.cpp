#include "analysis/ablation/ablation_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/ablation/pilot.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/known_words.h"
#include "profiles/cluster_json.h"
#include "profiles/error.h"
#include "profiles/model_profile_json.h"
#include "profiles/processes.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr int kMostSeedsAsked = 64;
constexpr int kMostSeedAsked = 1'000'000'000;
constexpr int kMostGpuAsked = 1023;  // its number
constexpr int kMostSamples = 2'000'000'000;
constexpr double kPpmOfPoint = 10'000;  // a point is a percent

std::vector<std::string_view> arm_names() {
  std::vector<std::string_view> names;
  for (const ArmFacts& facts : all_arms()) names.push_back(facts.name);
  return names;
}

// Refuses a list that lacks what its arms are compared with or made from.
void refuse_lonely_arms(const std::vector<Arm>& arms) {
  const auto has = [&](Arm arm) { return std::find(arms.begin(), arms.end(), arm) != arms.end(); };
  if (!has(Arm::kUnfrozen)) {
    refuse_flags("--arms without unfrozen", "it among them: all arms are compared with it");
  }
  for (const Arm arm : arms) {
    for (const Arm need : needs_of(arm)) {
      if (has(need)) continue;
      refuse_flags(fmt::format("{} without {} in --arms", facts_of(arm).name, facts_of(need).name),
                   "both: the one is made from the other");
    }
  }
}

std::vector<Arm> read_arms(const Flags& flags) {
  std::vector<Arm> arms;
  const auto list = optional_text(flags, "arms");
  if (!list) {
    for (const ArmFacts& facts : all_arms()) arms.push_back(facts.arm);
    return arms;
  }
  const std::vector<std::string_view> names = arm_names();
  for (std::size_t begin = 0; begin <= list->size();) {
    const std::size_t end = std::min(list->find(',', begin), list->size());
    const std::string name = known_name("--arms", list->substr(begin, end - begin), names);
    const Arm arm = find_arm(name).value();
    if (std::find(arms.begin(), arms.end(), arm) != arms.end()) {
      refuse_flags(fmt::format("--arms with {} twice", name), "each arm once");
    }
    arms.push_back(arm);
    begin = end + 1;
  }
  refuse_lonely_arms(arms);
  return arms;
}

AskedSeeds read_seeds(const Flags& flags) {
  AskedSeeds asked;
  asked.count = optional_integer(flags, "seeds", 1, kMostSeedsAsked);
  if (const auto list = optional_text(flags, "seed-list")) {
    if (asked.count) refuse_flags("--seeds beside --seed-list", "one of the two");
    const std::vector<int> seeds = checked_flags("--seed-list", *list, 0, kMostSeedAsked);
    asked.seeds.emplace(seeds.begin(), seeds.end());
  }
  return asked;
}

double read_margin(const Flags& flags) {
  if (flags.count("margin") == 0) return 1;
  const std::int64_t ppm = required_percent_ppm(flags, "margin");
  if (ppm == 0) refuse_flags("--margin 0", "a percentage above 0, up to 100");
  return static_cast<double>(ppm) / kPpmOfPoint;
}

// Returns the list as `frazil train` would write it.
std::string read_gpus(const Flags& flags, const std::string& device) {
  const auto list = optional_text(flags, "gpus");
  if (!list) return "";
  if (device == "cpu") refuse_flags("--gpus without --device cuda", "both");
  std::string gpus;
  for (const int gpu : checked_flags("--gpus", *list, 0, kMostGpuAsked)) {
    gpus += (gpus.empty() ? "" : ",") + std::to_string(gpu);
  }
  return gpus;
}

// Says where the devices are. One process is what `frazil train` has without the flag; the cluster
// then stays as its file says.
void read_place(const Flags& flags, AblationRequest& request) {
  AblationInputs& inputs = request.inputs;
  inputs.processes = integer_or(flags, "procs", 1, 1, kMostCounted);
  if (inputs.processes > 1) deal_processes(request.cluster, inputs.processes, "--procs");
  if (const auto device = optional_text(flags, "device")) {
    inputs.device = known_name("--device", *device, kDeviceWords);
  }
  inputs.gpus = read_gpus(flags, inputs.device);
}

AblationRequest read_files(const Flags& flags) {
  AblationRequest request;
  request.base = read_base_run(required_text(flags, "run"));
  request.profile_file = required_text(flags, "profile");
  request.cluster_file = required_text(flags, "cluster");
  request.profile = read_model_profile(request.profile_file);
  request.cluster = read_cluster(request.cluster_file);
  request.inputs = {.run_hash = request.base.hash,
                    .profile_hash = hash_of(read_text_file(request.profile_file)),
                    .cluster_hash = hash_of(read_text_file(request.cluster_file))};
  read_place(flags, request);
  return request;
}

void refuse_without_freezing(const AblationRequest& request) {
  const bool freezes = std::any_of(request.arms.begin(), request.arms.end(), [](Arm arm) {
    return facts_of(arm).masks != ArmFacts::Masks::kNone;
  });
  if (!freezes || request.base.freezes) return;
  throw InputError(request.base.file.string(), 0, "no freezing",
                   "a \"freeze\" for the arms that freeze");
}

// Refuses to write a pilot that nothing could be planned by.
void refuse_odd_pilot(const Flags& flags, const AblationRequest& request) {
  if (!optional_text(flags, "pilot-out")) return;
  if (std::find(request.arms.begin(), request.arms.end(), Arm::kAll) == request.arms.end()) {
    refuse_flags("--pilot-out without all in --arms", "both");
  }
  if (request.seeds.size() >= kLeastPilotSeeds) return;
  refuse_flags(fmt::format("--pilot-out of {} seeds", request.seeds.size()),
               fmt::format("at least {}", kLeastPilotSeeds));
}

void refuse_lonely_title(const Flags& flags) {
  if (flags.count("title") == 0 || flags.count("html") > 0 || flags.count("svg") > 0) return;
  refuse_flags("--title without --html and --svg", "one of them, which it heads");
}

// A folder of an ablation has folders of arms alone.
void refuse_other_folder(const fs::path& out) {
  if (!fs::is_directory(out)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(out)) {
    if (find_arm(entry.path().filename().string())) continue;
    throw InputError(out.string(), 0, "a folder with " + entry.path().filename().string(),
                     "a new or an empty one, or that of an ablation");
  }
}

void refuse_files_within(const fs::path& out, const Flags& flags) {
  const std::string folder = fs::weakly_canonical(out).string() + "/";
  for (const char* const flag : {"html", "svg", "csv", "pilot-out"}) {
    const auto file = optional_text(flags, flag);
    if (!file || fs::weakly_canonical(*file).string().rfind(folder, 0) != 0) continue;
    refuse_flags(fmt::format("--{} {} within the folder of --out", flag, *file), "another place");
  }
}

}  // namespace

void add_ablation_flags(po::options_description& flags) {
  flags.add_options()(
      "run", text_value("FILE"),
      "run configuration, with its own freezing; beside --samples, of an epoch, its runs are "
      "predicted beforehand")  //
      ("out", text_value("FOLDER"),
       "folder of the runs; what has finished there is not run again")  //
      ("arms", known_value("LIST", arm_names()),
       "ways to train, a comma list; default: all; help lists them")  //
      ("seeds", text_value("N"),
       "so many seeds, from 1 on; default: 8, or as many as follow from --pilot")  //
      ("seed-list", text_value("LIST"), "these seeds, a comma list")               //
      ("pilot", text_value("FILE"),
       "differences under other seeds, from whose spread the number of seeds follows")  //
      ("pilot-out", text_value("FILE"),
       "write the differences of this ablation, a pilot for another one")  //
      ("margin", text_value("POINTS"),
       "points of accuracy that an arm may lose and still count as non-inferior; default 1")  //
      ("device", known_value("KIND", kDeviceWords),
       "what the cluster's devices are here, as train takes it: cpu (default) or cuda")  //
      ("gpus", text_value("LIST"),
       "with --device cuda: which GPUs, as 0,1; devices take them in turn; default: all")  //
      ("html", text_value("FILE"), "also a page with pictures")                            //
      ("svg", text_value("FILE"), "also a picture: speeds and differences of accuracy")    //
      ("csv", text_value("FILE"), "also a row for each run: accuracy, times, state")       //
      ("title", text_value("TEXT"),
       "heading of page and picture: what was trained; default: Ablation")  //
      ("quiet", po::bool_switch(), "no progress");
}

std::string list_arms() {
  std::string list;
  for (const ArmFacts& facts : all_arms()) {
    list += fmt::format("{:<17}{}\n", facts.name, facts.one_line);
  }
  return list;
}

AblationOrder read_ablation(const Flags& flags) {
  const std::string out = required_text(flags, "out");
  std::vector<Arm> arms = read_arms(flags);
  const AskedSeeds asked = read_seeds(flags);
  AblationOrder order;
  order.margin_points = read_margin(flags);
  std::optional<Pilot> pilot;
  if (const auto file = optional_text(flags, "pilot")) pilot = read_pilot(*file);
  ChosenSeeds chosen = choose_seeds(asked, pilot, order.margin_points);
  order.asked_seeds = chosen.asked;
  AblationRequest& request = order.request;
  request = read_files(flags);
  request.out = out;
  request.arms = std::move(arms);
  request.seeds = std::move(chosen.seeds);
  request.samples = optional_integer(flags, "samples", 1, kMostSamples);
  if (pilot) refuse_other_run(*pilot, request.inputs.run_hash);
  refuse_odd_pilot(flags, request);
  refuse_without_freezing(request);
  refuse_lonely_title(flags);
  refuse_folder_place({"--out", out});
  refuse_other_folder(out);
  refuse_files_within(out, flags);
  refuse_overwriting(named_files(flags, {"run", "profile", "cluster", "pilot"}),
                     named_files(flags, {"html", "svg", "csv", "pilot-out"}));
  return order;
}

}  // namespace frazil
