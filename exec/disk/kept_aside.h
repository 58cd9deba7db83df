#pragma once
// A file of a run that is found damaged is kept beside the one that takes its place, as
// "<name>.damaged-<hash of its bytes>", 16 hex digits: the same however often it is kept.

#include <filesystem>
#include <string>
#include <string_view>

#include "exec/disk/file_system.h"

namespace frazil {

// Writes the bytes, which the file had as it was found, beside it, unless they lie there already.
// Returns their name. Throws InputError.
std::string keep_copy_aside(const FileSystem& files, const std::filesystem::path& path,
                            const std::string& bytes);
// Renames the file. One whose bytes cannot be read gets the hash of none. Throws InputError.
void move_aside(const FileSystem& files, const std::filesystem::path& path);

// Returns the name of the file that was kept under this name; empty if it is no name of that form.
std::string_view name_before_aside(std::string_view name);

}  // namespace frazil
