#include "tests/exec/disk/faulty_files.h"

#include <algorithm>
#include <cerrno>

namespace frazil {

FaultyFiles::FaultyFiles(FileSystem real)
    : real_(std::move(real)), state_(std::make_shared<State>()) {}

void FaultyFiles::arm(Fault fault, int calls) {
  state_->fault = fault;
  state_->left = calls;
}

int FaultyFiles::strike(State& state) {
  ++state.calls;
  const bool crashed = state.left < 0 && state.fault == Fault::kCrash;
  if (crashed) throw Crash{};
  if (state.left < 0 || state.left-- > 0) return 0;
  switch (state.fault) {
    case Fault::kCrash:
      throw Crash{};
    case Fault::kNoSpace:
      return ENOSPC;
    case Fault::kInputOutput:
      return EIO;
  }
  return 0;
}

FileSystem FaultyFiles::files() {
  FileSystem files;
  const auto wrap = [state = state_](auto call) {
    return [state, call](auto&&... arguments) {
      const int error = strike(*state);
      return error != 0 ? static_cast<decltype(call(arguments...))>(-error) : call(arguments...);
    };
  };
  files.open = wrap(real_.open);
  files.read = wrap(real_.read);
  files.write = [state = state_, real = real_](int file, const void* bytes, std::size_t size) {
    if (state->left == 0) (void)real.write(file, bytes, size / 2);
    if (const int error = strike(*state); error != 0) return static_cast<ssize_t>(-error);
    const bool hindered = state->largest_write != std::size_t(-1);
    if (hindered && state->calls % 3 == 0) return static_cast<ssize_t>(-EINTR);
    return real.write(file, bytes, std::min(size, state->largest_write));
  };
  files.read_at = wrap(real_.read_at);
  files.write_at = [state = state_, real = real_](int file, const void* bytes, std::size_t size,
                                                  std::int64_t place) {
    if (state->left == 0) (void)real.write_at(file, bytes, size / 2, place);
    if (const int error = strike(*state); error != 0) return static_cast<ssize_t>(-error);
    const bool hindered = state->largest_write != std::size_t(-1);
    if (hindered && state->calls % 3 == 0) return static_cast<ssize_t>(-EINTR);
    return real.write_at(file, bytes, std::min(size, state->largest_write), place);
  };
  files.sync = wrap(real_.sync);
  files.truncate = wrap(real_.truncate);
  files.size = wrap(real_.size);
  files.lock = wrap(real_.lock);
  // Files close themselves while a crash is on its way: the next call meets it.
  files.close = [state = state_, real = real_](int file) {
    if (state->left == 0) --state->left;
    return real.close(file);
  };
  files.rename = wrap(real_.rename);
  files.unlink = wrap(real_.unlink);
  files.make_folder = wrap(real_.make_folder);
  files.list = wrap(real_.list);
  return files;
}

}  // namespace frazil
