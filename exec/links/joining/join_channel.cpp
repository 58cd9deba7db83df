#include "exec/links/joining/join_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "profiles/error.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

void wait_for(const Descriptor& socket, short events, JoinClock::time_point until) {
  const auto left = std::chrono::ceil<milliseconds>(left_until(until)).count();
  pollfd entry{socket.number(), events, 0};
  (void)::poll(&entry, 1, static_cast<int>(std::min<long long>(left, 100)));
}

[[noreturn]] void lose(const std::string& who, const std::string& what) {
  throw PeerLost(who + " " + what);
}

}  // namespace

Duration left_until(JoinClock::time_point until) {
  return std::max<Duration>(until - JoinClock::now(), kNoTime);
}

std::string to_proved_bytes(const JoinMessage& message, const Secret& key, ProofPurpose purpose,
                            const Secret& listener_nonce, const Secret& caller_nonce) {
  std::string bytes = to_bytes(message);
  const std::string_view body = std::string_view(bytes).substr(kJoinHeadBytes);
  const Secret proof = make_proof(key, purpose, listener_nonce, caller_nonce, vouched_part(body));
  std::copy(proof.begin(), proof.end(), bytes.end() - static_cast<std::ptrdiff_t>(proof.size()));
  return bytes;
}

JoinReader::State JoinReader::read(const Descriptor& socket) {
  std::array<char, 4096> part{};
  for (;;) {
    const std::size_t missing = std::min(wanted_ - bytes_.size(), part.size());
    const ssize_t got = ::recv(socket.number(), part.data(), missing, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block()) return State::kUnfinished;
    if (got <= 0) return State::kClosed;
    bytes_.append(part.data(), static_cast<std::size_t>(got));
    if (bytes_.size() < wanted_) continue;
    const State state = judge();
    if (state != State::kUnfinished) return state;
  }
}

// Called with the head, and once more with the body behind it.
JoinReader::State JoinReader::judge() {
  if (bytes_.size() == kJoinHeadBytes) {
    const std::optional<JoinHead> head = parse_head(bytes_);
    if (!head) return State::kForeign;
    if (head->protocol != kJoinProtocol) return State::kOtherProtocol;
    if (head->bytes == 0 || head->bytes > most_bytes_) return State::kForeign;
    head_ = *head;
    wanted_ += head->bytes;
    return State::kUnfinished;
  }
  std::string body = bytes_.substr(kJoinHeadBytes);
  std::optional<JoinMessage> message = parse_body(head_.kind, body);
  if (!message) return State::kForeign;
  frame_ = JoinFrame{std::move(*message), std::move(body)};
  return State::kWhole;
}

JoinFrame receive_message(const Descriptor& socket, JoinClock::time_point until,
                          const std::string& who, const JoinCheck& check) {
  JoinReader reader(kMostListenerBytes);
  for (;;) {
    switch (reader.read(socket)) {
      case JoinReader::State::kWhole:
        return reader.frame();
      case JoinReader::State::kClosed:
        lose(who, "closed the connection while this process joined");
      case JoinReader::State::kForeign:
        lose(who, "does not speak as a process of Frazil that may be joined");
      case JoinReader::State::kOtherProtocol:
        lose(who, "speaks another version of the joining");
      case JoinReader::State::kUnfinished:
        if (JoinClock::now() >= until)
          lose(who, "did not answer in time while this process joined");
        if (check) check();
        wait_for(socket, POLLIN, until);
    }
  }
}

void send_message(const Descriptor& socket, const std::string& bytes, JoinClock::time_point until,
                  const std::string& who) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t sent = ::send(socket.number(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
    } else if (sent < 0 && would_block()) {
      if (JoinClock::now() >= until) lose(who, "took nothing in time while this process joined");
      wait_for(socket, POLLOUT, until);
    } else if (errno != EINTR) {
      lose(who, "closed the connection while this process joined");
    }
  }
}

bool try_to_send(const Descriptor& socket, const std::string& bytes) {
  return ::send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

bool is_closed(const Descriptor& socket) {
  char byte = 0;
  const ssize_t got = ::recv(socket.number(), &byte, 1, MSG_PEEK);
  return got == 0 || (got < 0 && !would_block() && errno != EINTR);
}

}  // namespace frazil
