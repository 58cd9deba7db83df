#include "exec/links/passed_sockets.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "exec/links/socket.h"

namespace frazil {
namespace {

constexpr int kPassed = 2;  // sockets in a message

struct Words {
  std::uint32_t epoch = 0;
  std::int32_t process = 0;
};

// Room for the descriptors of one message, as the system wants it.
union Ancillary {
  cmsghdr head;
  std::array<char, CMSG_SPACE(kPassed * sizeof(int))> bytes;
};

[[noreturn]] void fail(const char* what) {
  throw SocketError(std::string(what) + ": " + std::strerror(errno));
}

bool wait_readable(int socket, Duration limit) {
  pollfd entry{socket, POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  return ::poll(&entry, 1, static_cast<int>(left)) > 0;
}

}  // namespace

void pass_sockets(const Descriptor& to, const PassedSockets& passed) {
  Words words{passed.epoch, passed.process};
  const int numbers[kPassed] = {passed.sockets.steps.number(), passed.sockets.bulk.number()};
  iovec bytes{&words, sizeof words};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = &ancillary;
  message.msg_controllen = sizeof ancillary;
  ancillary.head.cmsg_level = SOL_SOCKET;
  ancillary.head.cmsg_type = SCM_RIGHTS;
  ancillary.head.cmsg_len = CMSG_LEN(sizeof numbers);
  std::memcpy(CMSG_DATA(&ancillary.head), numbers, sizeof numbers);
  if (::sendmsg(to.number(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof words)) {
    fail("a process does not take the sockets of another one");
  }
}

std::optional<PassedSockets> take_passed(const Descriptor& from, Duration limit) {
  if (!wait_readable(from.number(), limit)) return std::nullopt;
  Words words;
  iovec bytes{&words, sizeof words};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = &ancillary;
  message.msg_controllen = sizeof ancillary;
  const ssize_t got = ::recvmsg(from.number(), &message, MSG_CMSG_CLOEXEC);
  if (got < 0) fail("sockets of another process cannot be taken");
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (got != static_cast<ssize_t>(sizeof words) || head == nullptr ||
      head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(kPassed * sizeof(int))) {
    throw SocketError("whoever hands over the sockets of other processes is gone");
  }
  int numbers[kPassed] = {-1, -1};
  std::memcpy(numbers, CMSG_DATA(head), sizeof numbers);
  return PassedSockets{.epoch = words.epoch,
                       .process = words.process,
                       .sockets = {Descriptor(numbers[0]), Descriptor(numbers[1])}};
}

}  // namespace frazil
