#pragma once
// Whole files in, whole files out. A file is written beside its place and renamed into it, so a
// reader never sees half of one and a failed write loses nothing.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

// The bytes of a file; a name ending in ".gz" is NOT unpacked. Throws InputError (line 0) when it
// is missing, a folder, unreadable or larger than 1 GiB.
std::string read_text_file(const std::filesystem::path& path);

// Writes `text` to `path` by rename, making missing parent folders. Throws InputError (line 0) when
// the place cannot be written; then nothing is left behind.
void write_text_file(const std::filesystem::path& path, std::string_view text);

// Several files, all of them or none: each is whole beside its place before the first takes it.
// (Only where a rename itself fails, files renamed before it stay.)
struct NewFile {
  std::filesystem::path path;
  std::string text;
};
void write_text_files(const std::vector<NewFile>& files);

}  // namespace frazil
