#include "tests/bench/support/watched_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace frazil {

WatchedFiles::WatchedFiles() : files_(real_file_system()) {
  files_.open = [this, open = files_.open](const std::string& path, int flags) {
    return last_ = open(path, flags);
  };
}

void WatchedFiles::drop_pages() const {
  if (::fsync(last_) != 0 || ::posix_fadvise(last_, 0, 0, POSIX_FADV_DONTNEED) != 0) {
    throw std::runtime_error("the pages of the file cannot be dropped");
  }
}

std::optional<std::int64_t> bytes_from_storage() {
  std::ifstream file("/proc/self/io");
  std::string name;
  std::int64_t bytes = 0;
  while (file >> name >> bytes) {
    if (name == "read_bytes:") return bytes;
  }
  return std::nullopt;
}

}  // namespace frazil
