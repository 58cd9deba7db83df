#pragma once
// Opens the system's files for a cache on disk and can drop a file's pages from the system's
// memory, so that the next read comes from the disk.

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
  // Returns the descriptor that was opened last; -1: none was.
  int last() const { return last_; }
  // Writes the file opened last to the disk and drops its pages from memory. Throws
  // std::runtime_error if the system refuses.
  void drop_pages() const;

 private:
  FileSystem files_;
  int last_ = -1;
};

// Returns the bytes that storage has given this process so far; none if the system does not tell.
std::optional<std::int64_t> bytes_from_storage();

}  // namespace frazil
