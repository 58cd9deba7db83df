#pragma once
// The system's files, for what caches on disk: the pages of its file can be dropped from the
// system's memory, so that what is read next comes from the disk.

#include <cstdint>
#include <optional>

#include "exec/disk/file_system.h"

namespace frazil {

class WatchedFiles {
 public:
  WatchedFiles();
  WatchedFiles(const WatchedFiles&) = delete;
  WatchedFiles& operator=(const WatchedFiles&) = delete;

  const FileSystem& files() const { return files_; }
  // The descriptor that was opened last; -1: none was.
  int last() const { return last_; }
  // Of that file, after writing them to the disk. Throws std::runtime_error.
  void drop_pages() const;

 private:
  FileSystem files_;
  int last_ = -1;
};

// That storage has given this process so far; none where the system does not tell.
std::optional<std::int64_t> bytes_from_storage();

}  // namespace frazil
