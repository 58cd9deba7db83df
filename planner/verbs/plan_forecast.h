#pragma once
// Implements frazil plan --forecast TRACE, which says which plan to hold when, transitions
// included. --out writes a file for each plan that is held, under the mask of its first step.

#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

ExitCode plan_forecast(const Flags& values);

}  // namespace frazil
