// frazil verify: checks whether a plan still runs as its costs say.

#include <nlohmann/json.hpp>

#include "analysis/tables/table.h"
#include "exec/config/configured_run.h"
#include "exec/measuring/fixed.h"
#include "exec/profile/verify.h"
#include "exec/train/progress.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/actions/validate_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/verbs/command_line.h"
#include "profiles/cluster_json.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  flags.add_options()                                                            //
      ("run", text_value("FILE"), "run configuration: model, data, optimizer")   //
      ("cluster", text_value("FILE"), "cluster (frazil profile --cluster-out)")  //
      ("plan", text_value("FILE"), "plan to verify")                             //
      ("device", text_value("KIND"),
       "what the cluster's devices are here: cpu (default) or cuda")                       //
      ("blocks", text_value("N"), "blocks of profile and run, default 40")                 //
      ("steps", text_value("N"), "steps of each half of a block, default 8")               //
      ("bar", text_value("PERCENT"), "largest accepted deviation in percent, default 10")  //
      ("plant", text_value("LAYER:PERCENT"),
       "self-test LAYER:PERCENT: that layer runs slower in the run halves")  //
      ("seed", text_value("N"), "instead of the run's own")                  //
      ("quiet", po::bool_switch(), "no progress")                            //
      ("json", po::bool_switch(), "answer in JSON");
  add_kernels_flag(flags);
  return flags;
}

void read_plant(const std::string& text, VerifyOptions& options, int layers) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    throw InputError("command line", 0, "--plant " + text, "LAYER:PERCENT, such as 3:20");
  }
  options.slow_layer = checked_flag("--plant", text.substr(0, colon), 0, layers - 1);
  options.slow_percent = checked_flag("--plant", text.substr(colon + 1), 1, 1000);
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
  options.bar = integer_or(flags, "bar", 10, 1, 1000) / 100.0;
  options.seed = options.config.seed;
  if (const auto plant = optional_text(flags, "plant")) {
    read_plant(*plant, options, static_cast<int>(structure.layers.size()));
  }
  return options;
}

std::string print_verification(const Verification& verification, double bar) {
  Table table{{"what", "predicted / measured", "from", "to", "blocks", "verdict"}, {}};
  for (const VerifiedRatio& row : verification.ratios) {
    table.rows.push_back({row.name, fixed(row.ratio.median, 3), fixed(row.ratio.low, 3),
                          fixed(row.ratio.high, 3), std::to_string(row.ratio.blocks),
                          std::string(verdict_name(row.verdict))});
  }
  const auto milliseconds = [](Duration duration) { return fixed(to_ms(duration), 3); };
  if (verification.predicted_step == Duration{0}) {
    return "all " + std::to_string(verification.dropped_blocks) +
           " blocks dropped because other programs were busy: nothing to compare\n" +
           std::string(verdict_name(verification.verdict)) + "\n";
  }
  return to_text(table) + "step: predicted " + milliseconds(verification.predicted_step) +
         " ms, measured " + milliseconds(verification.measured_step) + " ms; bar " +
         fixed(100 * bar, 0) + " %; " + std::to_string(verification.dropped_blocks) +
         " blocks dropped because other programs were busy\n" +
         std::string(verdict_name(verification.verdict)) + "\n";
}

nlohmann::ordered_json to_answer(const Verification& verification) {
  nlohmann::ordered_json answer;
  answer["verdict"] = verdict_name(verification.verdict);
  answer["predicted_step_ns"] = verification.predicted_step.count();
  answer["measured_step_ns"] = verification.measured_step.count();
  answer["dropped_blocks"] = verification.dropped_blocks;
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

ExitCode to_exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return ExitCode::kOk;
    case Verdict::kFail:
      return ExitCode::kVerifyFailed;
    case Verdict::kInconclusive:
      return ExitCode::kVerifyInconclusive;
  }
  ENSURE(false, "unknown verdict");
}

ExitCode run_verify(const po::variables_map& flags) {
  const VerifyOptions options = read_options(flags);
  const Dataset data = load_data(options.config);
  refuse_larger_batch(options.config, data, required_text(flags, "run"));
  const bool quiet = flags["quiet"].as<bool>();
  check_machine("verify", options.processors, static_cast<int>(options.cluster.devices.size()),
                quiet);
  Verification verification;
  {
    Progress progress("verify", options.blocks, quiet, "blocks");
    verification = verify(options, data, [&](int done, int) { progress.update(done, ""); });
  }
  const std::string answer = flags["json"].as<bool>()
                                 ? to_answer(verification).dump(2) + "\n"
                                 : print_verification(verification, options.bar);
  print_answer(answer);
  return to_exit_code(verification.verdict);
}

int run_verify_verb(int argc, char** argv) {
  const Verb verb{"verify", "Checks that a plan still runs as its costs say.",
                  "frazil verify --run FILE --cluster FILE --plan FILE [--blocks N]"};
  return run_verb(verb, argc, argv, describe_flags(), [](const po::variables_map& flags) {
    return run_with_torch(flags, [&] { return run_verify(flags); });
  });
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_verify_verb(argc, argv); }
