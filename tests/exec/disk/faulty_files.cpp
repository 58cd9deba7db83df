#include "tests/exec/disk/faulty_files.h"

#include <algorithm>
#include <cerrno>

namespace frazil {
namespace {

using Lock = std::lock_guard<std::mutex>;

}  // namespace

FaultyFiles::FaultyFiles(FileSystem real)
    : real_(std::move(real)), state_(std::make_shared<State>()) {}

int FaultyFiles::calls() const {
  const Lock lock(state_->mutex);
  return static_cast<int>(state_->log.size());
}

std::vector<std::string> FaultyFiles::log() const {
  const Lock lock(state_->mutex);
  return state_->log;
}

void FaultyFiles::arm(Fault fault, int calls) {
  const Lock lock(state_->mutex);
  state_->fault = fault;
  state_->left = calls;
  state_->only.clear();
}

void FaultyFiles::arm(Fault fault, const std::string& text, int calls) {
  arm(fault, calls);
  const Lock lock(state_->mutex);
  state_->only = text;
}

bool FaultyFiles::has_struck() const {
  const Lock lock(state_->mutex);
  return state_->left < 0;
}

void FaultyFiles::disarm() {
  const Lock lock(state_->mutex);
  state_->left = 1 << 30;
  state_->log.clear();
  state_->only.clear();
  state_->largest_write = std::size_t(-1);
}

void FaultyFiles::hinder(std::size_t largest_write) {
  const Lock lock(state_->mutex);
  state_->largest_write = largest_write;
}

bool FaultyFiles::State::is_next(const std::string& call) const {
  const Lock lock(mutex);
  return left == 0 && counts(call);
}

bool has_another_way(const std::string& call) {
  return call.starts_with("open_direct ") || call.starts_with("read_direct ") ||
         call.starts_with("is_in_memory ");
}

bool FaultyFiles::State::interrupts() const {
  const Lock lock(mutex);
  return largest_write != std::size_t(-1) && log.size() % 3 == 0;
}

int FaultyFiles::State::strike(const std::string& call) {
  const Lock lock(mutex);
  if (left < 0 && fault == Fault::kCrash) throw Crash{};
  log.push_back(call);
  if (left < 0 || !counts(call) || left-- > 0) return 0;
  switch (fault) {
    case Fault::kCrash:
      throw Crash{};
    case Fault::kNoSpace:
      return ENOSPC;
    case Fault::kInputOutput:
      return EIO;
  }
  return 0;
}

std::string FaultyFiles::State::path_of(int file) {
  const Lock lock(mutex);
  return paths[file];
}

FileSystem FaultyFiles::files() {
  FileSystem files;
  // `of_file` wraps a call on an open file, `of_path` one on a name.
  const auto of_file = [state = state_](const char* name, auto call) {
    return [state, name, call](int file, auto... arguments) {
      const int error = state->strike(name + (" " + state->path_of(file)));
      return error != 0 ? static_cast<decltype(call(file, arguments...))>(-error)
                        : call(file, arguments...);
    };
  };
  const auto of_path = [state = state_](const char* name, auto call) {
    return [state, name, call](const std::string& path, auto&&... arguments) {
      const int error = state->strike(name + (" " + path));
      return error != 0 ? -error : call(path, arguments...);
    };
  };
  files.open = [state = state_, open = of_path("open", real_.open)](const std::string& path,
                                                                    int flags) {
    const int file = open(path, flags);
    const Lock lock(state->mutex);
    if (file >= 0) state->paths[file] = path;
    return file;
  };
  files.read = of_file("read", real_.read);
  files.write = [state = state_, real = real_](int file, const void* bytes, std::size_t size) {
    const std::string call = "write " + state->path_of(file);
    if (state->is_next(call)) (void)real.write(file, bytes, size / 2);
    if (const int error = state->strike(call); error != 0) {
      return static_cast<ssize_t>(-error);
    }
    if (state->interrupts()) return static_cast<ssize_t>(-EINTR);
    return real.write(file, bytes, std::min(size, state->largest_write));
  };
  files.read_at = of_file("read_at", real_.read_at);
  files.write_at = [state = state_, real = real_](int file, const void* bytes, std::size_t size,
                                                  std::int64_t place) {
    const std::string call = "write_at " + state->path_of(file);
    if (state->is_next(call)) (void)real.write_at(file, bytes, size / 2, place);
    if (const int error = state->strike(call); error != 0) {
      return static_cast<ssize_t>(-error);
    }
    if (state->interrupts()) return static_cast<ssize_t>(-EINTR);
    return real.write_at(file, bytes, std::min(size, state->largest_write), place);
  };
  files.open_direct = [state = state_, open = of_file("open_direct", real_.open_direct)](int file) {
    const int direct = open(file);
    const std::string path = state->path_of(file);
    const Lock lock(state->mutex);
    if (direct >= 0) state->paths[direct] = path;
    return direct;
  };
  files.read_direct = of_file("read_direct", real_.read_direct);
  files.is_in_memory = of_file("is_in_memory", real_.is_in_memory);
  files.sync = of_file("sync", real_.sync);
  files.truncate = of_file("truncate", real_.truncate);
  files.size = of_file("size", real_.size);
  files.lock = of_file("lock", real_.lock);
  // A close is done even where it fails, as the system does it. Files close themselves while a
  // crash is on its way, so the next call is the one that crashes.
  files.close = [state = state_, real = real_](int file) {
    int error = 0;
    try {
      error = state->strike("close " + state->path_of(file));
    } catch (const Crash&) {
    }
    const int result = real.close(file);
    return error != 0 ? -error : result;
  };
  files.rename = of_path("rename", real_.rename);
  files.unlink = of_path("unlink", real_.unlink);
  files.make_folder = of_path("make_folder", real_.make_folder);
  files.list = of_path("list", real_.list);
  return files;
}

}  // namespace frazil
