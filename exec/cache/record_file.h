#pragma once
// The file of the records on disk: without a name, so that nothing is left of it however the
// process ends. What the system has in memory is copied from there; all else is read past its
// memory, which takes half the processor's time and none of the memory, and is the faster the more
// threads read at once. Where a file system has no such way, and where it fails, it is read as any
// file. Of several threads.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "exec/disk/file_system.h"

namespace frazil {

class RecordFile {
 public:
  // Throws InputError where the folder takes no file. `files` outlives it.
  RecordFile(const FileSystem& files, const std::filesystem::path& folder);
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // Both throw InputError as File does.
  void write(std::string_view bytes, std::int64_t place);
  // What is there, at most `size` bytes.
  std::size_t read(void* bytes, std::size_t size, std::int64_t place);

 private:
  // Memory of whole blocks.
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
  std::mutex mutex_;          // of all below
  std::vector<Blocks> free_;  // as many as have read at once
};

}  // namespace frazil
