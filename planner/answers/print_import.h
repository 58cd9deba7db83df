#pragma once
// Prints what an imported trace or layer graph contained, for people (a table) and for programs
// (one JSON object).

#include <string>

#include "profiles/import/imported_profile.h"
#include "traces/kineto/kineto_profile.h"

namespace frazil {

std::string print_import(const KinetoImport& import);
std::string import_json(const KinetoImport& import);
std::string print_import(const ImportedProfile& import);
std::string import_json(const ImportedProfile& import);

}  // namespace frazil
