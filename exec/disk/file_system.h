#pragma once
// The calls through which checkpoints, the step journal and the feature cache reach the disk, and
// nothing else of them does: a struct of functions, so that a test can count, fail or end a run at
// any of them.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

// Each as the system's call of that name, but for errors: -errno, and errno is not looked at.
struct FileSystem {
  std::function<int(const std::string& path, int flags)> open;  // new files: 0600
  std::function<ssize_t(int file, void* bytes, std::size_t size)> read;
  std::function<ssize_t(int file, const void* bytes, std::size_t size)> write;
  std::function<ssize_t(int file, void* bytes, std::size_t size, std::int64_t place)> read_at;
  std::function<ssize_t(int file, const void* bytes, std::size_t size, std::int64_t place)>
      write_at;
  // The same file once more, open for read_direct alone: past the system's memory (O_DIRECT), of
  // whole blocks, into memory that is aligned as they are.
  std::function<int(int file)> open_direct;
  std::function<ssize_t(int file, void* bytes, std::size_t size, std::int64_t place)> read_direct;
  // mincore: 1 where the system has all these bytes in memory, else 0.
  std::function<int(int file, std::size_t size, std::int64_t place)> is_in_memory;
  std::function<int(int file)> sync;  // fsync, of a folder too
  std::function<int(int file, std::int64_t size)> truncate;
  std::function<std::int64_t(int file)> size;
  std::function<int(int file)> lock;  // flock, exclusive, not waiting
  std::function<int(int file)> close;
  std::function<int(const std::string& from, const std::string& to)> rename;
  std::function<int(const std::string& path)> unlink;
  std::function<int(const std::string& path)> make_folder;  // 0700
  std::function<int(const std::string& folder, std::vector<std::string>& names)> list;
};

FileSystem real_file_system();

// An open file or folder that closes itself. Every call is done whole (short and interrupted ones
// go on) or throws InputError with path, call and the system's reason. No link is followed.
class File {
 public:
  File(const FileSystem& files, const std::filesystem::path& path, int flags);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(std::string_view bytes);
  // What is there, at most `size`.
  std::size_t read(void* bytes, std::size_t size);
  // At a place counted from the file's beginning; of several threads too.
  void write_at(std::string_view bytes, std::int64_t place);
  std::size_t read_at(void* bytes, std::size_t size, std::int64_t place);
  // Whether the system has these bytes in memory; a failure to say is a no.
  bool is_in_memory(std::size_t size, std::int64_t place);
  // From now on there is read_direct. False: the file system has no such way.
  bool open_direct();
  // Whole blocks past the system's memory, in one call: whether the first `needed` bytes came.
  // Size, place and memory are multiples of kBlock. Throws nothing: read_at tells what is wrong.
  bool read_direct(void* bytes, std::size_t size, std::int64_t place, std::size_t needed);
  static constexpr std::size_t kBlock = 4096;
  std::int64_t size();
  void truncate(std::int64_t size);
  void sync();
  void close();
  bool try_lock();  // false: another open file holds the lock; it goes with the file

 private:
  void check(std::int64_t result, const char* call) const;

  const FileSystem& files_;
  std::filesystem::path path_;
  int descriptor_;
  int direct_ = -1;
};

// Names made, renamed or removed in it last from here on. Throws as File does.
void sync_folder(const FileSystem& files, const std::filesystem::path& folder);
// With its parents; each that is new is durable in its parent.
void make_folders(const FileSystem& files, const std::filesystem::path& folder);
std::vector<std::string> list_folder(const FileSystem& files, const std::filesystem::path& folder);
// One that is gone already is no error.
void remove_file(const FileSystem& files, const std::filesystem::path& path);
void rename_file(const FileSystem& files, const std::filesystem::path& from,
                 const std::filesystem::path& to);

}  // namespace frazil
