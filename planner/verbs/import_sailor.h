#pragma once
// Implements frazil import sailor PLAN --data FOLDER --out FOLDER, which writes profile.json,
// plan.json and cluster.json, all or none. planner/interop/sailor_plan.h says what a device then
// is.

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

void describe_sailor_import(boost::program_options::options_description& flags);
ExitCode import_sailor(const Flags& values, const std::vector<std::string>& files);

}  // namespace frazil
