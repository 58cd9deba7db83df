#include "planner/reproduce/pipetransformer.h"

#include <fmt/format.h>

#include "planner/reproduce/frazil_plans.h"
#include "planner/reproduce/own_plans/own_tables.h"
#include "planner/reproduce/own_plans/print_own.h"
#include "planner/reproduce/pipetransformer_runs.h"
#include "planner/reproduce/pipetransformer_tables.h"
#include "planner/verbs/command_line.h"

namespace frazil {

namespace {

constexpr const char* kLetters =
    "As its authors write: K devices of a pipeline, R pipelines, L_f frozen blocks, alpha the "
    "share "
    "that freezes next\n\n";

}  // namespace

void describe_pipetransformer_flags(boost::program_options::options_description&) {}

ExitCode reproduce_pipetransformer(const Flags& values) {
  if (values.count("data") > 0) {
    refuse_flags("--data with reproduce pipetransformer", "no data: its figures are its own");
  }
  const auto tables = reproduce_pipetransformer_tables();
  const auto runs = plan_runs(imagenet_training(), freeze_schedule(12, 1.0 / 3, 10));
  const OwnComparison own = compare_own_plans();
  const std::vector<OwnCase> cases = plan_cases();
  print_answer(is_set(values, "json")
                   ? fmt::format("{{\"tables\":{},\"runs\":{},\"own\":{}}}\n", tables_json(tables),
                                 runs_json(runs), own_json(own, cases))
                   : kLetters + print_tables(tables) + print_runs(runs) + print_own(own, cases));
  return ExitCode::kOk;
}

}  // namespace frazil
