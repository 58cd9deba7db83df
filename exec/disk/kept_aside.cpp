#include "exec/disk/kept_aside.h"

#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDamaged = ".damaged-";

fs::path place_aside(const fs::path& path, std::string_view bytes) {
  const std::string name =
      path.filename().string() + std::string(kDamaged) + to_hex(hash_text(bytes));
  return path.parent_path() / name;
}

// Bytes that the disk does not give back are no reason to lose those that it does.
std::string read_if_possible(const FileSystem& files, const fs::path& path) {
  try {
    return read_file(files, path);
  } catch (const InputError&) {
    return "";
  }
}

}  // namespace

std::string keep_copy_aside(const FileSystem& files, const fs::path& path,
                            const std::string& bytes) {
  const fs::path place = place_aside(path, bytes);
  if (!is_in_folder(files, place)) write_file(files, place, bytes);
  return place.filename().string();
}

void move_aside(const FileSystem& files, const fs::path& path) {
  rename_file(files, path, place_aside(path, read_if_possible(files, path)));
}

std::string_view name_before_aside(std::string_view name) {
  const std::size_t end = name.rfind(kDamaged);
  if (end == std::string_view::npos || !parse_hex(name.substr(end + kDamaged.size()))) return {};
  return name.substr(0, end);
}

}  // namespace frazil
