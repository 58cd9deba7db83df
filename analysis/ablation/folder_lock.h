#pragma once
// Keeps the folder of an ablation for one process: two that run the same pairs would overwrite each
// other's files.

#include <filesystem>

namespace frazil {

// Holds the lock of a folder, flock() of the folder itself, as long as the object lives. The system
// drops it with the process, however that ends, and programs that the process has begun do not hold
// it. The folder is made if there is none, and removed again if nothing has come into it.
class FolderLock {
 public:
  // Throws InputError if another process holds the lock, or if the folder cannot be made or opened.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::filesystem::path folder_;
  bool is_made_ = false;
  int file_ = -1;
};

}  // namespace frazil
