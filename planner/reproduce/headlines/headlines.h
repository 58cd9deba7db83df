#pragma once
// The target of `frazil reproduce headlines`: one table of what papers about pipelines claim on
// their first page, as far as the simulator can answer it. See
// planner/reproduce/reproduce_main.cpp for targets.

#include <boost/program_options.hpp>

#include "planner/reproduce/result_table.h"
#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

// Returns the table: published, simulated, error, and in each row what is assumed or why it
// differs.
ResultTable simulate_headlines();

void describe_headlines_flags(boost::program_options::options_description& flags);
ExitCode reproduce_headlines(const Flags& values);

}  // namespace frazil
