#pragma once
// The flags of frazil verify. Two programs share them: frazil-verify, which knows no libtorch and
// guards traces, and frazil-verify-plan, which runs plans.

#include "planner/verbs/command_line.h"

namespace frazil {

// Returns name, purpose and usage of the subcommand.
Verb verify_verb();
// Adds the flags of both programs.
void describe_verify(boost::program_options::options_description& flags);

}  // namespace frazil
