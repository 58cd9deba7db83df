#pragma once
// The file of the records on disk. It has no name, so that nothing is left of it however the
// process ends. Safe to call from several threads.
//
// What the system has in memory is copied from there. All else is read past the system's memory
// (O_DIRECT), which takes half the processor's time and none of the memory, and is the faster the
// more threads read at once. If the file system offers no such reads, or one fails, the file is
// read as any other.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "exec/disk/file_system.h"

namespace frazil {

class RecordFile {
 public:
  // Throws InputError if the folder takes no file. `files` outlives the object.
  RecordFile(const FileSystem& files, const std::filesystem::path& folder);
  // Opens a file that a process has open, by the name of its descriptor: /proc/<pid>/fd/<number>.
  static std::unique_ptr<RecordFile> of_descriptor(const FileSystem& files,
                                                   const std::string& descriptor);
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // Both throw InputError as File does.
  void write(std::string_view bytes, std::int64_t place);
  // Reads what is there, at most `size` bytes, and returns how many.
  std::size_t read(void* bytes, std::size_t size, std::int64_t place);
  // Returns the descriptor by which other processes of this host can open the file.
  int number() const { return file_->number(); }

 private:
  explicit RecordFile(std::unique_ptr<File> file);

  // Aligned memory of whole blocks.
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  struct Blocks {
    std::unique_ptr<std::byte, Free> bytes = {};
    std::size_t size = 0;
  };
  bool read_direct(void* bytes, std::size_t size, std::int64_t place);
  Blocks take_blocks(std::size_t size);

  std::unique_ptr<File> file_;
  bool is_direct_;
  std::mutex mutex_;          // guards all below
  std::vector<Blocks> free_;  // as many as threads have read at once
};

}  // namespace frazil
