// Implements the part of frazil verify that runs a plan: frazil-verify (analysis/verify_main.cpp)
// starts it.

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "analysis/foreign_cores.h"
#include "analysis/guard/baseline_json.h"
#include "analysis/guard/guard_answer.h"
#include "analysis/tables/table.h"
#include "exec/config/configured_run.h"
#include "exec/devices/host_facts.h"
#include "exec/measuring/fixed.h"
#include "exec/profile/verify.h"
#include "exec/train/processes/member_processes.h"
#include "exec/train/processes/run_world.h"
#include "exec/train/progress.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/actions/validate_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/verify_flags.h"
#include "profiles/cluster_json.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  describe_verify(flags);
  return flags;
}

std::optional<int> find_integer(const std::string& text, int minimum, int maximum) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool is_whole = error == std::errc{} && stop == end;
  return is_whole && number >= minimum && number <= maximum ? std::optional(number) : std::nullopt;
}

void read_plant(const std::string& text, VerifyOptions& options, int layers) {
  constexpr int kLargestPercent = 1000;
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string percent = text.substr(std::min(colon + 1, text.size()));
  const auto layer = find_integer(text.substr(0, colon), 0, layers - 1);
  const auto slower = find_integer(percent, 1, kLargestPercent);
  if (!layer || !slower) {
    refuse_flags("--plant " + text, "LAYER:PERCENT, such as 3:20: the layer an integer from 0 to " +
                                        std::to_string(layers - 1) +
                                        ", the percentage one from 1 to " +
                                        std::to_string(kLargestPercent));
  }
  options.slow_layer = *layer;
  options.slow_percent = *slower;
}

VerifyOptions read_options(const po::variables_map& flags) {
  VerifyOptions options;
  options.config = read_config(flags);
  options.processors = read_processors(flags);
  options.cluster = read_cluster(required_text(flags, "cluster"));
  const std::string plan_file = required_text(flags, "plan");
  options.plan = read_plan(plan_file);
  options.plan_file = plan_file;
  const ModelProfile structure = structure_of(options.config);
  validate(options.plan, {structure, options.cluster}, plan_file, lines_of(plan_file));
  options.blocks = integer_or(flags, "blocks", options.blocks, 2, 100'000);
  options.steps = integer_or(flags, "steps", options.steps, 1, 100'000);
  const bool is_guard = flags.count("baseline") > 0 || flags.count("write-baseline") > 0;
  options.bar = integer_or(flags, "bar", is_guard ? 3 : 10, 1, 1000) / 100.0;
  options.probes_link = is_guard;
  options.accepts_load = is_set(flags, "accept-load");
  options.seed = options.config.seed;
  if (const auto plant = optional_text(flags, "plant")) {
    read_plant(*plant, options, static_cast<int>(structure.layers.size()));
  }
  return options;
}

// Spreads the devices over the processes that are asked for, and returns their number.
int read_processes(const Flags& flags, VerifyOptions& options) {
  const auto devices = static_cast<int>(options.cluster.devices.size());
  const int processes = integer_or(flags, "procs", 1, 1, devices);
  if (processes == 1) return 1;
  spread_over(options.cluster, processes);
  options.config.micro_batch_size = options.plan.micro_batch_size;
  return processes;
}

std::string print_verification(const Verification& verification, double bar, bool accepts_load) {
  Table table{{"what", "predicted / measured", "from", "to", "blocks", "verdict"}, {}};
  for (const VerifiedRatio& row : verification.ratios) {
    table.rows.push_back({row.name, fixed(row.ratio.median, 3), fixed(row.ratio.low, 3),
                          fixed(row.ratio.high, 3), std::to_string(row.ratio.blocks),
                          std::string(verdict_name(row.verdict))});
  }
  const auto milliseconds = [](Duration duration) { return fixed(to_ms(duration), 3); };
  if (verification.predicted_step == Duration{0}) {
    return tell_verdict(verification.verdict, verification.reason);
  }
  return to_text(table) + "step: predicted " + milliseconds(verification.predicted_step) +
         " ms, measured " + milliseconds(verification.measured_step) + " ms; bar " +
         fixed(100 * bar, 0) + " %; " + std::to_string(verification.dropped_blocks) +
         " blocks dropped because other programs were busy\n" +
         (accepts_load ? "other programs kept " + fixed(verification.counted_foreign_cores, 2) +
                             " cores busy (--accept-load)\n"
                       : "") +
         tell_verdict(verification.verdict, verification.reason);
}

nlohmann::ordered_json to_answer(const Verification& verification) {
  nlohmann::ordered_json answer;
  answer["verdict"] = verdict_name(verification.verdict);
  if (!verification.reason.empty()) answer["reason"] = verification.reason;
  answer["predicted_step_ns"] = verification.predicted_step.count();
  answer["measured_step_ns"] = verification.measured_step.count();
  answer["dropped_blocks"] = verification.dropped_blocks;
  answer["foreign_cores"] = verification.counted_foreign_cores;
  answer["ratios"] = nlohmann::ordered_json::array();
  for (const VerifiedRatio& row : verification.ratios) {
    answer["ratios"].push_back({{"name", row.name},
                                {"median", row.ratio.median},
                                {"low", row.ratio.low},
                                {"high", row.ratio.high},
                                {"blocks", row.ratio.blocks},
                                {"verdict", verdict_name(row.verdict)}});
  }
  return answer;
}

// Runs the check once, with a bar of progress.
Verification run_blocks(const VerifyOptions& options, const Dataset& data, const Flags& flags) {
  Progress progress("verify", options.blocks, is_set(flags, "quiet"), "blocks");
  return verify(options, data, [&](int done, int) { progress.update(done, ""); });
}

// A day on which other programs were let run is no other day.
Provenance describe_question(const VerifyOptions& options, const Flags& flags) {
  Provenance question{{"measured_by", "plan"},
                      {"model_hash", model_hash(structure_of(options.config))},
                      {"plan", summarize(options.plan)},
                      {"device", optional_text(flags, "device").value_or("cpu")}};
  if (options.accepts_load) question["foreign_load"] = "accepted";
  if (const auto processes = optional_text(flags, "procs")) question["processes"] = *processes;
  return question;
}

Baseline describe_day(const Verification& measured, const VerifyOptions& options,
                      const Flags& flags) {
  Provenance fingerprint = host_facts();
  if (!options.model_check.empty()) fingerprint["model_file"] = options.model_check;
  if (options.accepts_load) fingerprint[kForeignCores] = fixed(measured.counted_foreign_cores, 2);
  return {describe_question(options, flags), fingerprint, options.seed, sum_up(measured.series)};
}

// Measures a good day and stores it.
ExitCode store_day(const VerifyOptions& options, const Dataset& data, const Flags& flags,
                   const std::string& file) {
  const Verification measured = run_blocks(options, data, flags);
  const Baseline today = describe_day(measured, options, flags);
  std::string reason = refuse_good_day(today.values, {}, Guarded::kPlan);
  const std::string dropped = tell_dropped(measured, options.blocks);
  if (!reason.empty() && !dropped.empty()) reason += "; " + dropped;
  return keep_baseline(today, reason, file, is_set(flags, "json"));
}

// Compares with the baseline, and measures again with another seed if something is slower.
ExitCode run_guard(const VerifyOptions& options, const Dataset& data, const Flags& flags,
                   const Baseline& baseline) {
  const std::string file = required_text(flags, "baseline");
  Verification measured = run_blocks(options, data, flags);
  const Baseline today = describe_day(measured, options, flags);
  GuardReport report{file, baseline.fingerprint, today.fingerprint, {}, {}};
  std::vector<std::vector<Movement>> second;
  if (!today.values.empty()) {
    refuse_other_question(baseline, today, file);
    report.movements = find_movements(baseline.values, today.values, options.bar);
  }
  report.missing = find_missing(baseline.values, today.values);
  report.added = find_missing(today.values, baseline.values);
  if (needs_confirmation(report.movements)) {
    VerifyOptions again = options;
    ++again.seed;
    const Verification confirmed = run_blocks(again, data, flags);
    const std::vector<GuardedValue> values = sum_up(confirmed.series);
    second.push_back(find_movements(baseline.values, values, options.bar));
    const auto gone = find_missing(find_missing(baseline.values, values), report.missing);
    report.missing.insert(report.missing.end(), gone.begin(), gone.end());
    if (confirmed.dropped_blocks > measured.dropped_blocks) measured = confirmed;
  }
  report.conclusion = conclude_guard(report.movements, second, Guarded::kPlan, report.missing);
  const std::string dropped = tell_dropped(measured, options.blocks);
  if (!report.conclusion.reason.empty() && !dropped.empty()) {
    report.conclusion.reason += "; " + dropped;
  }
  const bool as_json = is_set(flags, "json");
  print_answer(as_json ? guard_json(report) : print_guard(report));
  return exit_code_of(report.conclusion.verdict);
}

ExitCode run_verify(const po::variables_map& flags) {
  for (const char* of_traces : {"micro-batches", "layer-ranges"}) {
    if (flags.count(of_traces) > 0) {
      refuse_flags(std::string("--") + of_traces + " without --trace", "both");
    }
  }
  const std::optional<BaselineFile> good_day = read_baseline_file(flags);
  refuse_overwriting(named_files(flags, {"run", "cluster", "plan", "baseline"}),
                     named_files(flags, {"write-baseline"}));
  // The baseline is read before any work.
  std::optional<Baseline> baseline;
  if (good_day && !good_day->is_written) baseline = read_baseline(good_day->path);
  if (good_day && good_day->is_written) check_output_file(good_day->path);
  VerifyOptions options = read_options(flags);
  const Dataset data = load_data(options.config);
  std::optional<MemberProcesses> members;  // outlive the run that they serve
  if (const int processes = read_processes(flags, options); processes > 1) {
    options.world = [&, processes] {
      TrainOptions told;
      told.config = options.config;
      told.cluster = options.cluster;
      told.processors = options.processors;
      return lead(members.emplace(processes), told, data, Transport::kSockets, /*restarts=*/false);
    };
  }
  refuse_larger_batch(options.config, data, required_text(flags, "run"));
  options.model_check = check_model_file("verify", options.config, is_set(flags, "quiet"));
  check_machine("verify", options.processors, static_cast<int>(options.cluster.devices.size()),
                is_set(flags, "quiet"));
  if (baseline) return run_guard(options, data, flags, *baseline);
  if (good_day) return store_day(options, data, flags, good_day->path);
  const Verification verification = run_blocks(options, data, flags);
  print_answer(is_set(flags, "json")
                   ? to_answer(verification).dump(2) + "\n"
                   : print_verification(verification, options.bar, options.accepts_load));
  return exit_code_of(verification.verdict);
}

int run_verify_verb(int argc, char** argv) {
  return run_verb(verify_verb(), argc, argv, describe_flags(), [](const po::variables_map& flags) {
    return run_with_torch(flags, [&] { return run_verify(flags); });
  });
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_verify_verb(argc, argv); }
