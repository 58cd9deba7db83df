#pragma once
// What an imported trace gave, for people (a table) and for programs (one JSON object).

#include <string>

#include "traces/kineto_profile.h"

namespace frazil {

std::string print_import(const KinetoImport& import);
std::string import_json(const KinetoImport& import);

}  // namespace frazil
