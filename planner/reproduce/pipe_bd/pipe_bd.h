#pragma once
// The target of `frazil reproduce pipe-bd`: see planner/reproduce/reproduce_main.cpp for targets.

#include <boost/program_options.hpp>

#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

void describe_pipe_bd_flags(boost::program_options::options_description& flags);
ExitCode reproduce_pipe_bd(const Flags& values);

}  // namespace frazil
