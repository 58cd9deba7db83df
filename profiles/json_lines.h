#pragma once
// The line of a value in a JSON file, by its path, for what turns out wrong after the file was
// read: a plan that does not suit its model.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "profiles/json.h"

namespace frazil {

// Of a path as JsonCursor::path() writes them. 0: not known.
using LineOf = std::function<int(const std::string& path)>;

// The line of the value, or of the innermost object or array on the way to it that is there.
int find_line(const JsonCursor& root, std::string_view path);

// Reads the file when it is asked; 0 where that cannot be done again, as with a pipe.
LineOf lines_of(const std::filesystem::path& file);

}  // namespace frazil
