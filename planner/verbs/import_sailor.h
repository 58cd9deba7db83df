#pragma once
// frazil import sailor PLAN --data FOLDER --out FOLDER: writes profile.json, plan.json and
// cluster.json, all or none. See planner/interop/sailor_plan.h for what a device then is.

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

void describe_sailor_import(boost::program_options::options_description& flags);
ExitCode import_sailor(const Flags& values, const std::vector<std::string>& files);

}  // namespace frazil
