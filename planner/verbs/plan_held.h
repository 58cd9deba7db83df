#pragma once
// frazil plan --held: whether to go on with a plan that executes, or to switch.

#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"

namespace frazil {

ExitCode plan_held(const Flags& values);

}  // namespace frazil
