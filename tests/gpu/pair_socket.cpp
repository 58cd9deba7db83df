#include "tests/gpu/pair_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace frazil {

PairSocket::~PairSocket() { ::close(descriptor_); }

void PairSocket::write(const void* bytes, std::size_t count) const {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t gone = ::send(descriptor_, next, count, MSG_NOSIGNAL);
    if (gone < 0 && errno == EINTR) continue;
    if (gone <= 0) throw PeerGone();
    next += gone;
    count -= static_cast<std::size_t>(gone);
  }
}

void PairSocket::read(void* bytes, std::size_t count, std::chrono::milliseconds limit) const {
  char* next = static_cast<char*>(bytes);
  while (count > 0) {
    ::pollfd one{.fd = descriptor_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&one, 1, static_cast<int>(limit.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) throw std::runtime_error("the other process has said nothing for too long");
    const ssize_t came = ::recv(descriptor_, next, count, 0);
    if (came < 0 && errno == EINTR) continue;
    if (came <= 0) throw PeerGone();
    next += came;
    count -= static_cast<std::size_t>(came);
  }
}

bool PairSocket::is_gone() const {
  char byte = 0;
  const ssize_t came = ::recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return came == 0 || (came < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace frazil
