#include "profiles/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestFile = std::size_t{1} << 30;
constexpr int kMostTemporaryNames = 1000;

std::string error_text(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail_read(const fs::path& path, const std::string& found) {
  throw InputError(path.string(), 0, found, "a readable file");
}

[[noreturn]] void fail_write(const fs::path& path, const std::string& found) {
  throw InputError(path.string(), 0, found, "a place for a file");
}

void refuse_size(const fs::path& path, std::size_t size) {
  if (size <= kLargestFile) return;
  throw InputError(path.string(), 0, "more than 1 GiB", "a file of at most 1 GiB");
}

std::string describe_error(int error) { return fmt::format("the error \"{}\"", error_text(error)); }

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
    if (links == kMostLinks) fail_write(path, describe_error(ELOOP));
    const fs::path target = fs::read_symlink(place, error);
    if (error) fail_write(path, describe_error(error.value()));
    place = place.parent_path() / target;
    if (!fs::exists(fs::symlink_status(place, error))) {
      fail_write(path, describe_error(error ? error.value() : ENOENT));
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
    if (file.descriptor() < 0) fail_write(place, describe_error(errno));
    if (const int error = write_all(file, text); error != 0) {
      unlink(temporary.c_str());
      fail_write(place, describe_error(error));
    }
    return temporary;
  }
  fail_write(place, "leftover temporary files under every name");
}

// Files that are whole beside their places. The destructor removes those that were not renamed.
class StagedFiles {
 public:
  StagedFiles() = default;
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;
  ~StagedFiles() {
    for (const Staged& file : files_) unlink(file.temporary.c_str());
  }

  void add(const fs::path& path, std::string_view text) {
    const fs::path place = final_place(path);
    if (place.has_parent_path()) {
      std::error_code error;
      fs::create_directories(place.parent_path(), error);
      if (error) fail_write(path, describe_error(error.value()));
    }
    files_.push_back({path, place, write_beside(place, text)});
  }

  void rename_all() {
    while (!files_.empty()) {
      const Staged& next = files_.front();
      if (std::rename(next.temporary.c_str(), next.place.c_str()) != 0) {
        fail_write(next.path, describe_error(errno));
      }
      files_.erase(files_.begin());
    }
  }

 private:
  struct Staged {
    fs::path path;
    fs::path place;
    fs::path temporary;
  };
  std::vector<Staged> files_;
};

}  // namespace

std::string read_text_file(const fs::path& path) {
  OpenFile file(path, O_RDONLY | O_CLOEXEC);
  if (file.descriptor() < 0) {
    fail_read(path, errno == ENOENT ? "no such file" : describe_error(errno));
  }
  struct stat status {};
  if (fstat(file.descriptor(), &status) != 0) fail_read(path, describe_error(errno));
  if (S_ISDIR(status.st_mode)) fail_read(path, "a folder");
  refuse_size(path, static_cast<std::size_t>(status.st_size));
  std::string text;
  text.reserve(static_cast<std::size_t>(status.st_size));
  std::array<char, std::size_t{1} << 16> buffer;
  while (true) {
    const ssize_t count = read(file.descriptor(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_read(path, describe_error(errno));
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
