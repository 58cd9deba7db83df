#pragma once
// Finds the line of a value in a JSON file by the value's path. Messages use it for faults that
// show only after the file was read, as when a plan does not suit its model.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "profiles/json.h"

namespace frazil {

// Returns the line of the value at `path`, which is as JsonCursor::path() writes it; 0 if unknown.
using LineOf = std::function<int(const std::string& path)>;

// Returns the line of the value at `path`, or, when there is no such value or a key on the way is
// not of letters, digits and _ alone, the line of the innermost object or array reached.
int find_line(const JsonCursor& root, std::string_view path);

// Returns a function that reads the file at every call. It never throws InputError: it returns 0
// where the file cannot be read again, as with a pipe, or is no JSON any more.
LineOf lines_of(const std::filesystem::path& file);

}  // namespace frazil
