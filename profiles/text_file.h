#pragma once
// Reads and writes whole text files. A file is written beside its place and renamed into it, so a
// reader never sees half a file and a failed write loses nothing.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

// Returns the bytes of a file; a name ending in ".gz" is NOT unpacked. Throws InputError (line 0)
// when the file is missing, a folder, unreadable or larger than 1 GiB.
std::string read_text_file(const std::filesystem::path& path);

// Writes `text` to `path` by rename and makes missing parent folders. File and names are synced: a
// loss of power leaves the file before or this one. Throws InputError (line 0) when the place
// cannot be written; then no part of the file is left behind.
void write_text_file(const std::filesystem::path& path, std::string_view text);

// Writes several files, all or none: every file is whole beside its place before the first rename.
// (Only when a rename itself fails, the files that were renamed earlier stay.)
struct NewFile {
  std::filesystem::path path;
  std::string text;
};
void write_text_files(const std::vector<NewFile>& files);

}  // namespace frazil
