#include "profiles/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <system_error>

#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestFile = std::size_t{1} << 30;
constexpr int kMostTemporaryNames = 1000;

[[noreturn]] void fail_read(const fs::path& path, const std::string& found) {
  throw InputError(path.string(), 0, found, "a readable file");
}

[[noreturn]] void fail_read(const fs::path& path, int error) {
  fail_system(path.string(), error, "", "a readable file");
}

[[noreturn]] void fail_write(const fs::path& path, const std::string& found) {
  throw InputError(path.string(), 0, found, "a place for a file");
}

[[noreturn]] void fail_write(const fs::path& path, int error) {
  fail_system(path.string(), error, "", "a place for a file");
}

void refuse_size(const fs::path& path, std::size_t size) {
  if (size <= kLargestFile) return;
  throw InputError(path.string(), 0, "more than 1 GiB", "a file of at most 1 GiB");
}

// An open file that closes itself.
class OpenFile {
 public:
  OpenFile(const fs::path& path, int flags) : descriptor_(open(path.c_str(), flags, 0666)) {}
  ~OpenFile() { close_now(); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_; }
  bool close_now() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    return descriptor < 0 || close(descriptor) == 0;
  }

 private:
  int descriptor_;
};

// Writes, syncs and closes the file. Returns 0 or the errno of the first call that failed.
int write_all(OpenFile& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file.descriptor(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (fsync(file.descriptor()) != 0) return errno;
  return file.close_now() ? 0 : errno;
}

bool is_under(const fs::path& path, const char* folder) {
  const fs::path root(folder);
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

// True for a link such as /dev/stdout or /proc/self/fd/1, which leads to an open file and which no
// rename may replace.
bool is_open_file(const fs::path& link) {
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(fs::absolute(link, error).parent_path(), error);
  return folder == "/dev" || is_under(folder, "/proc");
}

// Returns the place of the rename. It follows links, so that a link survives, and throws for a
// folder, a pipe or a device file, which a rename would replace.
fs::path final_place(const fs::path& path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  fs::path place = path;
  for (int links = 0; fs::is_symlink(fs::symlink_status(place, error)); ++links) {
    if (is_open_file(place)) fail_write(path, "a special file");
    if (links == kMostLinks) fail_write(path, ELOOP);
    const fs::path target = fs::read_symlink(place, error);
    if (error) fail_write(path, error.value());
    place = place.parent_path() / target;
    if (!fs::exists(fs::symlink_status(place, error))) {
      fail_write(path, error ? error.value() : ENOENT);
    }
  }
  const fs::file_status status = fs::status(place, error);
  if (fs::is_directory(status)) fail_write(path, "a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) fail_write(path, "a special file");
  if (!place.has_filename()) fail_write(path, "no file name");
  return place;
}

// Writes `text` to a new file beside `place`. Returns the file's name, which no other writer uses.
fs::path write_beside(const fs::path& place, std::string_view text) {
  for (int counter = 0; counter < kMostTemporaryNames; ++counter) {
    fs::path temporary = place;
    temporary += fmt::format(".tmp.{}.{}", getpid(), counter);
    OpenFile file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC);
    if (file.descriptor() < 0 && errno == EEXIST) continue;
    if (file.descriptor() < 0) fail_write(place, errno);
    if (const int error = write_all(file, text); error != 0) {
      unlink(temporary.c_str());
      fail_write(place, error);
    }
    return temporary;
  }
  fail_write(place, "leftover temporary files under every name");
}

fs::path folder_of(const fs::path& place) {
  return place.has_parent_path() ? place.parent_path() : fs::path(".");
}

// Syncs a folder in which `path` has its name. A folder that may be written but not read, and a
// file system that syncs no folders, are no reason to refuse a file that is there.
void sync_folder(const fs::path& folder, const fs::path& path) {
  OpenFile open_folder(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (open_folder.descriptor() < 0) return;
  if (fsync(open_folder.descriptor()) == 0 || errno == EINVAL || errno == ENOTSUP) return;
  fail_write(path, errno);
}

// Files that are whole beside their places. The destructor removes those that were not renamed, and
// the folders made for them that are empty then.
class StagedFiles {
 public:
  StagedFiles() = default;
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;
  ~StagedFiles() {
    for (const Staged& file : files_) unlink(file.temporary.c_str());
    std::error_code error;
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) fs::remove(*folder, error);
  }

  void add(const fs::path& path, std::string_view text) {
    const fs::path place = final_place(path);
    std::error_code error;
    std::vector<fs::path> missing;
    for (fs::path folder = folder_of(place); !fs::exists(folder, error);) {
      missing.push_back(folder);
      folder = folder_of(folder);
      folders_.emplace(folder, path);  // there the new folder's name stands
    }
    made_.insert(made_.end(), missing.rbegin(), missing.rend());
    fs::create_directories(folder_of(place), error);
    if (error) fail_write(path, error.value());
    files_.push_back({path, place, write_beside(place, text)});
  }

  // The new names outlive a loss of power when this returns.
  void rename_all() {
    while (!files_.empty()) {
      const Staged& next = files_.front();
      if (std::rename(next.temporary.c_str(), next.place.c_str()) != 0) {
        fail_write(next.path, errno);
      }
      folders_.emplace(folder_of(next.place), next.path);
      files_.erase(files_.begin());
    }
    for (const auto& [folder, path] : folders_) sync_folder(folder, path);
  }

 private:
  struct Staged {
    fs::path path;
    fs::path place;
    fs::path temporary;
  };
  std::vector<Staged> files_;
  std::vector<fs::path> made_;            // folders, each behind the one that it lies in
  std::map<fs::path, fs::path> folders_;  // with new names, and a file for which each was made
};

}  // namespace

std::string read_text_file(const fs::path& path) {
  OpenFile file(path, O_RDONLY | O_CLOEXEC);
  if (file.descriptor() < 0 && errno == ENOENT) fail_read(path, "no such file");
  if (file.descriptor() < 0) fail_read(path, errno);
  struct stat status {};
  if (fstat(file.descriptor(), &status) != 0) fail_read(path, errno);
  if (S_ISDIR(status.st_mode)) fail_read(path, "a folder");
  refuse_size(path, static_cast<std::size_t>(status.st_size));
  std::string text;
  text.reserve(static_cast<std::size_t>(status.st_size));
  std::array<char, std::size_t{1} << 16> buffer;
  while (true) {
    const ssize_t count = read(file.descriptor(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_read(path, errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    refuse_size(path, text.size());
  }
}

void write_text_file(const fs::path& path, std::string_view text) {
  StagedFiles staged;
  staged.add(path, text);
  staged.rename_all();
}

void write_text_files(const std::vector<NewFile>& files) {
  StagedFiles staged;
  for (const NewFile& file : files) staged.add(file.path, file.text);
  staged.rename_all();
}

}  // namespace frazil
