#pragma once
// Reads a schedule as to_text() of planner/actions/schedule.h writes it.

#include <string>
#include <string_view>

#include "planner/actions/schedule.h"

namespace frazil {

// Throws InputError with file and line for anything else.
Schedule parse_schedule(std::string_view text, const std::string& file);

}  // namespace frazil
