#pragma once
// Wakes a thread that polls descriptors. It rings until it is silenced.

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "exec/links/socket.h"

namespace frazil {

class Alarm {
 public:
  // Throws SocketError.
  Alarm() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!descriptor_.is_open()) throw SocketError("cannot make an event descriptor");
  }

  int number() const { return descriptor_.number(); }  // readable while it rings
  void ring() const {
    const std::uint64_t one = 1;
    // It can only fail when the alarm rings already.
    [[maybe_unused]] const ssize_t written = write(number(), &one, sizeof one);
  }
  void silence() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(number(), &count, sizeof count);
  }

 private:
  Descriptor descriptor_;
};

}  // namespace frazil
