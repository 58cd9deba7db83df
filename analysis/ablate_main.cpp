// frazil ablate: trains one model in several ways under the same seeds, or predicts all of them,
// and says what freezing, changing plans, adding replicas and caching bring over the best plan
// without them.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/ablation/ablation.h"
#include "analysis/ablation/ablation_answer.h"
#include "analysis/ablation/ablation_charts.h"
#include "analysis/ablation/ablation_flags.h"
#include "analysis/ablation/ablation_page.h"
#include "analysis/ablation/pilot.h"
#include "analysis/ablation/predict/simulate_arms.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  flags.add_options()("profile", text_value("FILE"), "model profile")  //
      ("cluster", text_value("FILE"), "cluster")                       //
      ("procs", text_value("N"),
       "the cluster's devices in N processes, as train takes it, and with --simulate plan");
  add_ablation_flags(flags);
  add_simulate_arms_flags(flags);
  flags.add_options()("json", po::bool_switch(), "answer in JSON");
  return flags;
}

using AddFlags = void(po::options_description&);

// Refuses flags of the way that was not asked for; --samples means the same in both.
void refuse_flags_of(AddFlags& others, const Flags& given, const std::string& expected) {
  po::options_description flags;
  others(flags);
  for (const auto& flag : flags.options()) {
    const std::string& name = flag->long_name();
    if (name == "simulate" || name == "samples" || given.count(name) == 0 ||
        given[name].defaulted())
      continue;
    refuse_flags("--" + name, expected);
  }
}

ExitCode end_stopped(const AblationRequest& request, const AblationRuns& runs, bool as_json) {
  if (as_json) {
    print_answer(
        nlohmann::ordered_json{{"finished_pairs", runs.results.size()}, {"pairs", runs.pairs}}.dump(
            2) +
        "\n");
  }
  fmt::print(
      stderr,
      "frazil ablate: stopped by signal {} after {} of {} runs; what has finished is kept in "
      "{}, and the same command goes on from there\n",
      runs.stopped_by, runs.results.size(), runs.pairs, to_one_line(request.out.string()));
  return static_cast<ExitCode>(128 + runs.stopped_by);
}

std::vector<NewFile> list_files(const Flags& flags, const Ablation& ablation) {
  const std::string title = optional_text(flags, "title").value_or("Ablation");
  std::vector<NewFile> files;
  if (const auto page = optional_text(flags, "html")) {
    files.push_back({*page, to_html(ablation, title)});
  }
  if (const auto picture = optional_text(flags, "svg")) {
    files.push_back({*picture, draw_ablation(ablation, title)});
  }
  if (const auto rows = optional_text(flags, "csv")) files.push_back({*rows, to_csv(ablation)});
  if (const auto pilot = optional_text(flags, "pilot-out")) {
    files.push_back({*pilot, to_json(make_pilot(ablation.results))});
  }
  return files;
}

void tell_asked_seeds(const AblationOrder& order) {
  fmt::print(stderr, "frazil ablate: {} seeds; the pilot's spread asks for {}\n",
             order.request.seeds.size(), order.asked_seeds->asked);
}

// Ends an ablation in which nothing can be compared, for the best plan without freezing is none.
[[noreturn]] void end_unfit(const Ablation& ablation, bool as_json) {
  print_answer(as_json ? to_json(ablation) : to_text(ablation));
  const auto unfrozen = std::find_if(ablation.rows.begin(), ablation.rows.end(),
                                     [](const ArmRow& row) { return row.arm == Arm::kUnfrozen; });
  throw InfeasibleError("unfrozen does not fit, with which all arms are compared: " +
                        unfrozen->unfit);
}

ExitCode ablate(const Flags& flags) {
  if (optional_text(flags, "arms") == "help") {
    print_answer(list_arms());
    return ExitCode::kOk;
  }
  if (is_set(flags, "simulate")) {
    refuse_flags_of(add_ablation_flags, flags, "no --simulate beside it");
    return simulate_arms(flags);
  }
  refuse_flags_of(add_simulate_arms_flags, flags, "--simulate beside it");
  const bool as_json = is_set(flags, "json");
  const bool quiet = is_set(flags, "quiet");
  const AblationOrder order = read_ablation(flags);
  if (order.asked_seeds && !quiet) tell_asked_seeds(order);
  AblationRuns runs = run_ablation(order.request, [&](const std::string& line) {
    if (!quiet) fmt::print(stderr, "frazil ablate: {}\n", to_one_line(line));
  });
  if (runs.stopped_by != 0) return end_stopped(order.request, runs, as_json);
  const bool is_unfit = runs.unfit.contains(Arm::kUnfrozen);
  const Ablation ablation =
      sum_up(order.request, std::move(runs), order.margin_points, order.asked_seeds);
  if (is_unfit) end_unfit(ablation, as_json);
  const std::vector<NewFile> files = list_files(flags, ablation);
  write_and_answer([&] { write_text_files(files); },
                   as_json ? to_json(ablation) : to_text(ablation));
  for (const NewFile& file : files) {
    fmt::print(stderr, "wrote {}\n", to_one_line(file.path.string()));
  }
  return ExitCode::kOk;
}

int run_ablate_verb(int argc, char** argv) {
  return run_verb(
      {.name = "ablate",
       .purpose = "Says what freezing, AutoPipe, AutoDP and AutoCache bring over the best "
                  "plan without them, measured or predicted.",
       .usage = "frazil ablate --run FILE --profile FILE --cluster FILE --out FOLDER\n"
                "       frazil ablate --simulate --profile FILE --cluster FILE "
                "--forecast FILE --batch N"},
      argc, argv, describe_flags(), ablate);
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_ablate_verb(argc, argv); }
