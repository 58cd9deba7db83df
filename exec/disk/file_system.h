#pragma once
// The calls through which checkpoints, the step journal and the feature cache reach the disk; they
// reach it in no other way. It is a struct of functions, so that a test can count, fail or end a
// run at any call.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

// Each function is as the system's call of that name, except for errors: it returns -errno, and
// errno is not looked at.
struct FileSystem {
  std::function<int(const std::string& path, int flags)> open;  // new files: 0600
  std::function<ssize_t(int file, void* bytes, std::size_t size)> read;
  std::function<ssize_t(int file, const void* bytes, std::size_t size)> write;
  std::function<ssize_t(int file, void* bytes, std::size_t size, std::int64_t place)> read_at;
  std::function<ssize_t(int file, const void* bytes, std::size_t size, std::int64_t place)>
      write_at;
  // Opens the same file once more, for read_direct alone: reads past the system's memory
  // (O_DIRECT), of whole blocks, into memory that is aligned as the blocks are.
  std::function<int(int file)> open_direct;
  std::function<ssize_t(int file, void* bytes, std::size_t size, std::int64_t place)> read_direct;
  // Returns (by mincore) 1 if the system has all these bytes in memory, else 0.
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

// An open file or folder that closes itself. Every call is done whole (short and interrupted calls
// go on) or throws InputError with path, call and the system's reason. No link is followed.
class File {
 public:
  File(const FileSystem& files, const std::filesystem::path& path, int flags);
  // Takes over what opening gave, a descriptor or -errno; `path` is what errors name.
  struct Opened {
    int descriptor = -1;
  };
  File(const FileSystem& files, const std::filesystem::path& path, Opened opened);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(std::string_view bytes);
  // Reads what is there, at most `size` bytes, and returns how many.
  std::size_t read(void* bytes, std::size_t size);
  // Both take a place counted from the file's beginning, and may be called from several threads.
  void write_at(std::string_view bytes, std::int64_t place);
  std::size_t read_at(void* bytes, std::size_t size, std::int64_t place);
  // Returns true if the system has these bytes in memory; a failure to say is a no.
  bool is_in_memory(std::size_t size, std::int64_t place);
  // Makes read_direct possible. Returns false if the file system has no such way.
  bool open_direct();
  // Reads whole blocks past the system's memory, in one call. Returns true if the first `needed`
  // bytes came. Requires: size, place and memory are multiples of kBlock. Throws nothing: read_at
  // tells what is wrong.
  bool read_direct(void* bytes, std::size_t size, std::int64_t place, std::size_t needed);
  static constexpr std::size_t kBlock = 4096;
  int number() const { return descriptor_; }
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

// Makes names durable that were made, renamed or removed in the folder. Throws as File does.
void sync_folder(const FileSystem& files, const std::filesystem::path& folder);
// Makes a folder and its parents; each new one is durable in its parent.
void make_folders(const FileSystem& files, const std::filesystem::path& folder);
std::vector<std::string> list_folder(const FileSystem& files, const std::filesystem::path& folder);
// Removes a file; one that is gone already is no error.
void remove_file(const FileSystem& files, const std::filesystem::path& path);
void rename_file(const FileSystem& files, const std::filesystem::path& from,
                 const std::filesystem::path& to);
std::string read_file(const FileSystem& files, const std::filesystem::path& path);
// Makes a file beside its place, as ".tmp-<name>", which `write` writes, syncs it, renames it and
// syncs the folder: an earlier file is replaced whole or stays. After an InputError no temporary
// file is left as far as one can be removed.
void replace_file(const FileSystem& files, const std::filesystem::path& path,
                  const std::function<void(File&)>& write);
// Does so with these bytes.
void write_file(const FileSystem& files, const std::filesystem::path& path, std::string_view bytes);
bool is_in_folder(const FileSystem& files, const std::filesystem::path& path);  // a name, or a link

}  // namespace frazil
