#include "analysis/ablation/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

// Whoever held the lock may have removed the folder after it was opened here.
bool is_still_there(int file, const fs::path& folder) {
  struct stat opened {};
  struct stat named {};
  return fstat(file, &opened) == 0 && stat(folder.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Returns the folder, opened and locked.
int open_locked(const fs::path& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail_system(folder.string(), errno, "open", "the folder of an ablation");
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  const int error = errno;
  close(file);
  if (error != EWOULDBLOCK) fail_system(folder.string(), error, "flock", "a folder to lock");
  throw InputError(folder.string(), 0, "a folder in which another ablation runs",
                   "another folder, or the end of that one");
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) : folder_(folder) {
  while (file_ < 0) {
    std::error_code error;
    const bool is_made = fs::create_directories(folder_, error);
    if (error) fail_system(folder_.string(), error.value(), "", "a folder");
    is_made_ = is_made_ || is_made;
    file_ = open_locked(folder_);
    if (is_still_there(file_, folder_)) break;
    close(file_);
    file_ = -1;
  }
}

FolderLock::~FolderLock() {
  std::error_code error;
  if (is_made_ && fs::is_empty(folder_, error)) fs::remove(folder_, error);
  close(file_);
}

}  // namespace frazil
