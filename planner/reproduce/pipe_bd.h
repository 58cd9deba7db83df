#pragma once
// frazil reproduce pipe-bd: see reproduce_main.cpp for what a target is.

#include <boost/program_options.hpp>

#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

void describe_pipe_bd_flags(boost::program_options::options_description& flags);
ExitCode reproduce_pipe_bd(const Flags& values);

}  // namespace frazil
