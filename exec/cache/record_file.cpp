#include "exec/cache/record_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/units.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNamed = ".tmp-features-";

// Opens a file without a name; if the file system cannot do so, the file loses its name at once.
std::unique_ptr<File> open_nameless(const FileSystem& files, const fs::path& folder) {
  try {
    return std::make_unique<File>(files, folder, O_RDWR | O_TMPFILE);
  } catch (const InputError&) {
    // Removes the files of processes that ended in between: nobody opens one by its name.
    std::vector<std::string> names;
    files.list(folder.string(), names);
    for (const std::string& name : names) {
      if (name.starts_with(kNamed)) files.unlink((folder / name).string());
    }
    const fs::path path = folder / (std::string(kNamed) + std::to_string(::getpid()));
    auto file = std::make_unique<File>(files, path, O_RDWR | O_CREAT | O_EXCL);
    if (files.unlink(path.string()) < 0) remove_file(files, path);
    return file;
  }
}

constexpr std::size_t up_to_blocks(std::size_t size) {
  return divide_up(size, File::kBlock) * File::kBlock;
}

}  // namespace

RecordFile::RecordFile(std::unique_ptr<File> file)
    : file_(std::move(file)), is_direct_(file_->open_direct()) {}

RecordFile::RecordFile(const FileSystem& files, const fs::path& folder)
    : RecordFile(open_nameless(files, folder)) {}

// Such a name is a link, which File does not follow.
std::unique_ptr<RecordFile> RecordFile::of_descriptor(const FileSystem& files,
                                                      const std::string& descriptor) {
  const File::Opened opened{files.open(descriptor, O_RDWR | O_CLOEXEC)};
  return std::unique_ptr<RecordFile>(
      new RecordFile(std::make_unique<File>(files, descriptor, opened)));
}

void RecordFile::Free::operator()(std::byte* bytes) const { std::free(bytes); }

void RecordFile::write(std::string_view bytes, std::int64_t place) {
  file_->write_at(bytes, place);
}

std::size_t RecordFile::read(void* bytes, std::size_t size, std::int64_t place) {
  if (is_direct_ && !file_->is_in_memory(size, place) && read_direct(bytes, size, place)) {
    return size;
  }
  return file_->read_at(bytes, size, place);
}

// Reads the record together with what else is in its first and last block.
bool RecordFile::read_direct(void* bytes, std::size_t size, std::int64_t place) {
  const std::size_t before = static_cast<std::size_t>(place) % File::kBlock;
  const std::size_t whole = up_to_blocks(before + size);
  Blocks blocks = take_blocks(whole);
  const bool is_read = file_->read_direct(blocks.bytes.get(), whole,
                                          place - static_cast<std::int64_t>(before), before + size);
  if (is_read) std::memcpy(bytes, blocks.bytes.get() + before, size);
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(std::move(blocks));
  return is_read;
}

RecordFile::Blocks RecordFile::take_blocks(std::size_t size) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      Blocks blocks = std::move(free_.back());
      free_.pop_back();
      if (blocks.size >= size) return blocks;
    }
  }
  Blocks blocks{std::unique_ptr<std::byte, Free>(
                    static_cast<std::byte*>(std::aligned_alloc(File::kBlock, size))),
                size};
  if (!blocks.bytes) throw std::bad_alloc();
  return blocks;
}

}  // namespace frazil
