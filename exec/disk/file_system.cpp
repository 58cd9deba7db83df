#include "exec/disk/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

template <class Result>
Result or_error(Result result) {
  return result < 0 ? static_cast<Result>(-errno) : result;
}

int list_names(const std::string& folder, std::vector<std::string>& names) {
  DIR* const open = ::opendir(folder.c_str());
  if (open == nullptr) return -errno;
  errno = 0;
  while (const dirent* const entry = ::readdir(open)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  const int error = errno;
  ::closedir(open);
  return -error;
}

std::int64_t size_of(int file) {
  struct stat status {};
  return ::fstat(file, &status) != 0 ? -errno : std::int64_t{status.st_size};
}

int find_in_memory(int file, std::size_t size, std::int64_t place) {
  const auto page = static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  const std::int64_t first = place / page * page;
  const std::size_t length = size + static_cast<std::size_t>(place - first);
  void* const pages = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file, off_t{first});
  if (pages == MAP_FAILED) return -errno;
  std::vector<unsigned char> there(length / static_cast<std::size_t>(page) + 1, 1);
  const int result = or_error(::mincore(pages, length, there.data()));
  ::munmap(pages, length);
  if (result < 0) return result;
  return std::all_of(there.begin(), there.end(), [](unsigned char is) { return (is & 1) != 0; })
             ? 1
             : 0;
}

[[noreturn]] void fail(const fs::path& path, std::int64_t error, const std::string& call) {
  fail_system(path.string(), static_cast<int>(error), call, "a place for the files of a run");
}

}  // namespace

FileSystem real_file_system() {
  return {
      .open = [](const std::string& path,
                 int flags) { return or_error(::open(path.c_str(), flags, 0600)); },
      .read = [](int file, void* bytes,
                 std::size_t size) { return or_error(::read(file, bytes, size)); },
      .write = [](int file, const void* bytes,
                  std::size_t size) { return or_error(::write(file, bytes, size)); },
      .read_at =
          [](int file, void* bytes, std::size_t size, std::int64_t place) {
            return or_error(::pread(file, bytes, size, off_t{place}));
          },
      .write_at =
          [](int file, const void* bytes, std::size_t size, std::int64_t place) {
            return or_error(::pwrite(file, bytes, size, off_t{place}));
          },
      .open_direct =
          [](int file) {
            // The file may have no name but this.
            const std::string path = "/proc/self/fd/" + std::to_string(file);
            return or_error(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
          },
      .read_direct =
          [](int file, void* bytes, std::size_t size, std::int64_t place) {
            return or_error(::pread(file, bytes, size, off_t{place}));
          },
      .is_in_memory = find_in_memory,
      .sync = [](int file) { return or_error(::fsync(file)); },
      .truncate = [](int file,
                     std::int64_t size) { return or_error(::ftruncate(file, off_t{size})); },
      .size = size_of,
      .lock = [](int file) { return or_error(::flock(file, LOCK_EX | LOCK_NB)); },
      .close = [](int file) { return or_error(::close(file)); },
      .rename = [](const std::string& from,
                   const std::string& to) { return or_error(::rename(from.c_str(), to.c_str())); },
      .unlink = [](const std::string& path) { return or_error(::unlink(path.c_str())); },
      .make_folder = [](const std::string& path) { return or_error(::mkdir(path.c_str(), 0700)); },
      .list = list_names,
  };
}

File::File(const FileSystem& files, const fs::path& path, int flags)
    : files_(files), path_(path), descriptor_(-EINTR) {
  while (descriptor_ == -EINTR) {
    descriptor_ = files_.open(path_.string(), flags | O_CLOEXEC | O_NOFOLLOW);
  }
  if (descriptor_ < 0 && (flags & (O_ACCMODE | O_DIRECTORY)) == O_RDONLY) {
    fail_system(path_.string(), -descriptor_, "open", "a file to read");
  }
  check(descriptor_, "open");
}

File::File(const FileSystem& files, const fs::path& path, Opened opened)
    : files_(files), path_(path), descriptor_(opened.descriptor) {
  check(descriptor_, "open");
}

File::~File() {
  if (direct_ >= 0) files_.close(direct_);
  if (descriptor_ >= 0) files_.close(descriptor_);
}

void File::check(std::int64_t result, const char* call) const {
  if (result < 0) fail(path_, -result, call);
}

void File::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = files_.write(descriptor_, bytes.data(), bytes.size());
    if (count == -EINTR) continue;
    check(count == 0 ? -EIO : count, "write");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::size_t File::read(void* bytes, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = files_.read(descriptor_, static_cast<char*>(bytes) + done, size - done);
    if (count == -EINTR) continue;
    check(count, "read");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

void File::write_at(std::string_view bytes, std::int64_t place) {
  while (!bytes.empty()) {
    const ssize_t count = files_.write_at(descriptor_, bytes.data(), bytes.size(), place);
    if (count == -EINTR) continue;
    check(count == 0 ? -EIO : count, "write");
    bytes.remove_prefix(static_cast<std::size_t>(count));
    place += count;
  }
}

std::size_t File::read_at(void* bytes, std::size_t size, std::int64_t place) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = files_.read_at(descriptor_, static_cast<char*>(bytes) + done, size - done,
                                         place + static_cast<std::int64_t>(done));
    if (count == -EINTR) continue;
    check(count, "read");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

bool File::is_in_memory(std::size_t size, std::int64_t place) {
  return files_.is_in_memory(descriptor_, size, place) > 0;
}

bool File::open_direct() {
  if (direct_ < 0) direct_ = files_.open_direct(descriptor_);
  return direct_ >= 0;
}

bool File::read_direct(void* bytes, std::size_t size, std::int64_t place, std::size_t needed) {
  ssize_t count = -EINTR;
  while (count == -EINTR) count = files_.read_direct(direct_, bytes, size, place);
  return count >= 0 && static_cast<std::size_t>(count) >= needed;
}

std::int64_t File::size() {
  const std::int64_t size = files_.size(descriptor_);
  check(size, "stat");
  return size;
}

void File::truncate(std::int64_t size) { check(files_.truncate(descriptor_, size), "truncate"); }

// The call is not repeated after an error: what failed to reach the disk once may be dropped by
// then.
void File::sync() { check(files_.sync(descriptor_), "fsync"); }

void File::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  const int result = files_.close(descriptor);
  if (result != -EINTR) check(result, "close");
}

bool File::try_lock() {
  const int result = files_.lock(descriptor_);
  if (result == -EWOULDBLOCK) return false;
  check(result, "lock");
  return true;
}

void sync_folder(const FileSystem& files, const fs::path& folder) {
  File open(files, folder, O_RDONLY | O_DIRECTORY);
  open.sync();
}

void make_folders(const FileSystem& files, const fs::path& folder) {
  const int result = files.make_folder(folder.string());
  if (result == -EEXIST) return;
  const fs::path parent = fs::absolute(folder).parent_path();
  if (result == -ENOENT && parent != folder) {
    make_folders(files, parent);
    return make_folders(files, folder);
  }
  if (result < 0) fail(folder, -result, "mkdir");
  sync_folder(files, parent);
}

std::vector<std::string> list_folder(const FileSystem& files, const fs::path& folder) {
  std::vector<std::string> names;
  if (const int result = files.list(folder.string(), names); result < 0) {
    fail(folder, -result, "readdir");
  }
  return names;
}

void remove_file(const FileSystem& files, const fs::path& path) {
  const int result = files.unlink(path.string());
  if (result < 0 && result != -ENOENT) fail(path, -result, "unlink");
}

std::string read_file(const FileSystem& files, const fs::path& path) {
  File file(files, path, O_RDONLY);
  std::string bytes(static_cast<std::size_t>(file.size()), '\0');
  bytes.resize(file.read(bytes.data(), bytes.size()));
  return bytes;
}

void replace_file(const FileSystem& files, const fs::path& path,
                  const std::function<void(File&)>& write) {
  const fs::path temporary = path.parent_path() / (".tmp-" + path.filename().string());
  remove_file(files, temporary);
  try {
    File file(files, temporary, O_WRONLY | O_CREAT | O_EXCL);
    write(file);
    file.sync();
    file.close();
    rename_file(files, temporary, path);
  } catch (const InputError&) {
    files.unlink(temporary.string());
    throw;
  }
  sync_folder(files, path.parent_path());
}

void write_file(const FileSystem& files, const fs::path& path, std::string_view bytes) {
  replace_file(files, path, [bytes](File& file) { file.write(bytes); });
}

bool is_in_folder(const FileSystem& files, const fs::path& path) {
  const std::vector<std::string> names = list_folder(files, path.parent_path());
  return std::find(names.begin(), names.end(), path.filename().string()) != names.end();
}

void rename_file(const FileSystem& files, const fs::path& from, const fs::path& to) {
  if (const int result = files.rename(from.string(), to.string()); result < 0) {
    fail(to, -result, "rename");
  }
}

}  // namespace frazil
