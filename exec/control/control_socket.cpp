#include "exec/control/control_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>

namespace frazil {
namespace {

constexpr int kPatienceMs = 2000;
constexpr std::size_t kPiece = 1 << 16;

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

bool ControlSocket::send_bytes(std::string_view bytes) {
  const std::lock_guard<std::mutex> lock(sending_);
  return send_rest(bytes);
}

// What has been begun is sent to its end, or the other end would lose its place.
void ControlSocket::offer(const ControlMessage& message) {
  const std::string bytes = to_bytes(message);
  const std::unique_lock<std::mutex> lock(sending_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const ssize_t sent = ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent > 0) (void)send_rest(std::string_view(bytes).substr(static_cast<std::size_t>(sent)));
}

bool ControlSocket::send_rest(std::string_view left) {
  if (write_all(left)) return true;
  // The next message would land inside of this one.
  shut_down();
  return false;
}

bool ControlSocket::write_all(std::string_view left) {
  while (!left.empty()) {
    const ssize_t sent = ::send(socket_.number(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      left.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent == 0 || !would_wait()) return false;
    pollfd room{.fd = socket_.number(), .events = POLLOUT, .revents = 0};
    if (::poll(&room, 1, kPatienceMs) == 0) return false;
  }
  return true;
}

bool ControlSocket::receive(std::vector<ControlMessage>& messages) {
  std::array<char, kPiece> piece;
  bool is_open = true;
  for (;;) {
    const ssize_t got = ::recv(socket_.number(), piece.data(), piece.size(), 0);
    if (got > 0) {
      received_.append(piece.data(), static_cast<std::size_t>(got));
      // Less than was asked for is all that there is: what comes meanwhile wakes the receiver
      // again.
      if (static_cast<std::size_t>(got) < piece.size()) break;
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    is_open = got < 0 && would_wait();
    break;
  }
  std::string_view left = received_;
  while (std::optional<ControlMessage> message = take_message(left)) {
    messages.push_back(std::move(*message));
  }
  received_.erase(0, received_.size() - left.size());
  return is_open;
}

void ControlSocket::shut_down() { (void)::shutdown(socket_.number(), SHUT_RDWR); }

}  // namespace frazil
