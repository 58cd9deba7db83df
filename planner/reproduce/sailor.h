#pragma once
// frazil reproduce sailor: see reproduce_main.cpp for what a target is.

#include <boost/program_options.hpp>

#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

void describe_sailor_flags(boost::program_options::options_description& flags);
ExitCode reproduce_sailor(const Flags& values);

}  // namespace frazil
