#pragma once
// Implements frazil plan --held, which says whether to go on with a plan that executes or to make a
// transition to another.

#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"

namespace frazil {

ExitCode plan_held(const Flags& values);

}  // namespace frazil
