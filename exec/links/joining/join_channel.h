#pragma once
// Messages of the joining over one socket that never blocks. Exactly one message is read at a time
// and not a byte more, so what follows on the socket is left to whoever uses it next.

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "exec/links/joining/join_messages.h"
#include "profiles/units.h"

namespace frazil {

// A message as it came.
struct JoinFrame {
  JoinMessage message;
  std::string body;  // of which the message's proof vouches for vouched_part()
};

// Returns the bytes of the message with its proof in place.
std::string to_proved_bytes(const JoinMessage& message, const Secret& key, ProofPurpose purpose,
                            const Secret& listener_nonce, const Secret& caller_nonce);

// Collects the bytes of one message from a socket, as they come.
class JoinReader {
 public:
  explicit JoinReader(std::uint32_t most_bytes) : most_bytes_(most_bytes) {}

  enum class State : std::uint8_t {
    kUnfinished,
    kWhole,
    kClosed,         // by the other end, or broken
    kForeign,        // no message of the joining, or one that is too long
    kOtherProtocol,  // one of another version of it
  };

  // Reads what is there. Once it has said anything but kUnfinished it reads no more.
  State read(const Descriptor& socket);
  // Requires: read() has said kWhole.
  const JoinFrame& frame() const { return *frame_; }

 private:
  State judge();

  std::uint32_t most_bytes_;
  std::string bytes_;
  std::size_t wanted_ = kJoinHeadBytes;
  JoinHead head_;
  std::optional<JoinFrame> frame_;
};

using JoinClock = std::chrono::steady_clock;

// Returns the time until then, none if it is over.
Duration left_until(JoinClock::time_point until);

// Called several times a second while somebody waits; throws if waiting on makes no sense.
using JoinCheck = std::function<void()>;

// Waits for one message of the leader or a peer at `who`. Throws PeerLost if none has come by
// `until`, if the other end closes, or if it speaks something else.
JoinFrame receive_message(const Descriptor& socket, JoinClock::time_point until,
                          const std::string& who, const JoinCheck& check = {});
// Throws PeerLost if the bytes cannot be sent by `until`.
void send_message(const Descriptor& socket, const std::string& bytes, JoinClock::time_point until,
                  const std::string& who);
// Sends what can be sent without waiting; true if that is all.
bool try_to_send(const Descriptor& socket, const std::string& bytes);
// True if the other end has closed the socket or the connection is broken. Reads nothing.
bool is_closed(const Descriptor& socket);

}  // namespace frazil
