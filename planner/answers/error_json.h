#pragma once
// Prints errors for programs: one JSON object, for a program that asked for JSON reads standard
// output, where a sentence on standard error would be lost to it.

#include <string>
#include <string_view>

#include "profiles/error.h"

namespace frazil {

// Returns {"error": {"code": 3, "sentence": "..."}} in one line. `sentence` is what standard error
// says; control characters in it are written out.
std::string error_json(ExitCode code, std::string_view sentence);

// As above with the error's code, 2, 8 or 9, and with "file" (a file, "command line" or a flag),
// "line" where the file has one, "found" and "expected".
std::string error_json(std::string_view sentence, const InputError& error);

}  // namespace frazil
