#include "planner/reproduce/pipe_bd/pipe_bd.h"

#include "planner/reproduce/pipe_bd/pipe_bd_text.h"
#include "planner/verbs/command_line.h"

namespace frazil {

void describe_pipe_bd_flags(boost::program_options::options_description& /*flags*/) {}

ExitCode reproduce_pipe_bd(const Flags& values) {
  if (values.count("data") > 0) refuse_flags("--data", "none: pipe-bd needs no files");
  const PipeBdResults results = simulate_pipe_bd();
  print_answer(is_set(values, "json") ? pipe_bd_json(results) + "\n" : pipe_bd_text(results));
  const bool holds = results.schedules_are_exact && list_missed_speedups(results).empty() &&
                     results.idle_is_within_tenth && is_as_known(results.varying);
  return holds ? ExitCode::kOk : ExitCode::kFailure;
}

}  // namespace frazil
