#pragma once
// The path `frazil ablate --simulate`: predicts all arms of an ablation from a model profile, a
// cluster and a freeze trace, and prints the answer. Nothing is trained and nothing is written.

#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

// Adds --simulate and the flags that it alone reads; the caller describes --profile, --cluster,
// --procs and --json.
void add_simulate_arms_flags(boost::program_options::options_description& flags);

// Answers the question of the flags. Throws InputError for bad flags and files, and
// InfeasibleError, when the answer is out, if no arm has a plan that fits.
ExitCode simulate_arms(const Flags& values);

}  // namespace frazil
