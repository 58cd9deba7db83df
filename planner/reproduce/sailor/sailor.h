#pragma once
// The target of `frazil reproduce sailor`: see planner/reproduce/reproduce_main.cpp for targets.

#include <boost/program_options.hpp>

#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

void describe_sailor_flags(boost::program_options::options_description& flags);
ExitCode reproduce_sailor(const Flags& values);

}  // namespace frazil
