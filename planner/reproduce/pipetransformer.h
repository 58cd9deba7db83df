#pragma once
// The target of `frazil reproduce pipetransformer`: see planner/reproduce/reproduce_main.cpp for
// targets.

#include <boost/program_options.hpp>

#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

void describe_pipetransformer_flags(boost::program_options::options_description& flags);
ExitCode reproduce_pipetransformer(const Flags& values);

}  // namespace frazil
