#include "exec/links/lent_memory.h"

#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>

#include <algorithm>

namespace frazil {
namespace {

constexpr std::size_t kMarkBytes = 16;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // a call reads less than 2 GiB

}  // namespace

void allow_reading() { prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

bool read_memory(pid_t process, std::uint64_t address, void* into, std::size_t bytes) {
  auto* to = static_cast<char*>(into);
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, kMostAtOnce);
    const iovec here{to, part};
    const iovec there{reinterpret_cast<void*>(address), part};
    if (process_vm_readv(process, &here, 1, &there, 1, 0) != static_cast<ssize_t>(part)) {
      return false;
    }
    to += part;
    address += part;
    bytes -= part;
  }
  return true;
}

std::string draw_mark() {
  std::string mark(kMarkBytes, '\0');
  if (getrandom(mark.data(), mark.size(), 0) != static_cast<ssize_t>(mark.size())) return {};
  return mark;
}

bool finds_mark(pid_t process, std::uint64_t address, const std::string& mark) {
  std::string found(kMarkBytes, '\0');
  return mark.size() == kMarkBytes && process > 0 &&
         read_memory(process, address, found.data(), found.size()) && found == mark;
}

}  // namespace frazil
