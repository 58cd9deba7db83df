#pragma once
// What processes say while they join a run, as bytes: a head of 12 bytes (magic, version of the
// protocol, kind, size) and a body, numbers in little endian. Reading is pure and bounded: any
// bytes are a message, which is written again as the same bytes, or none.
//
//   listener -> caller   Challenge   at once, to whoever connects
//   caller -> leader     Hello       facts of the process, proof of the token
//   leader -> caller     Welcome     number, peers, proof;  or Refusal
//   caller -> peer       Dial        which connection of the run this one is, proof of the run's
//   key peer -> caller       Answer      proof;  or Refusal

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "exec/links/joining/join_token.h"
#include "exec/links/peer_sockets.h"
#include "exec/links/socket.h"

namespace frazil {

inline constexpr std::size_t kJoinHeadBytes = 12;
inline constexpr std::uint16_t kJoinProtocol = 1;
// The longest body that a listener reads of a caller, and a caller of a listener.
inline constexpr std::uint32_t kMostCallerBytes = 4096;
inline constexpr std::uint32_t kMostListenerBytes = 1U << 20;

// Who a process is. All processes of a run must agree in all but host, pid and devices.
struct ProcessFacts {
  std::string version = {};   // of Frazil
  std::uint64_t build = 0;    // hash of what the program was built from
  std::uint64_t run = 0;      // hash of the run's configuration
  std::uint64_t kernels = 0;  // hash of what computes: processor kernels, libtorch
  int attempt = 0;            // how often the launcher has started the run again
  std::string host = {};
  int pid = 0;
  int devices = 0;

  friend bool operator==(const ProcessFacts&, const ProcessFacts&) = default;
};

struct Challenge {
  Secret nonce{};
  bool wants_token = false;

  friend bool operator==(const Challenge&, const Challenge&) = default;
};

struct Hello {
  ProcessFacts facts = {};
  std::optional<int> asked = {};  // the number that a launcher gave the process
  std::uint16_t port = 0;         // at which it listens for its peers
  bool has_token = false;
  Secret challenge{};  // the nonce that it answers
  Secret nonce{};
  Secret proof{};

  friend bool operator==(const Hello&, const Hello&) = default;
};

struct Welcome {
  int process = 0;
  std::uint64_t epoch = 0;
  Secret session{};  // the key of the run's connections follows from it
  // By process; empty: the run goes on already, and connects the caller when it takes it in.
  std::vector<SocketAddress> addresses = {};
  Secret proof{};

  friend bool operator==(const Welcome&, const Welcome&) = default;
};

struct Refusal {
  std::string sentence = {};

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

struct Dial {
  std::uint64_t epoch = 0;
  int from = 0;
  int to = 0;
  LinkSocket link = LinkSocket::kSteps;
  Secret challenge{};
  Secret nonce{};
  Secret proof{};

  friend bool operator==(const Dial&, const Dial&) = default;
};

struct Answer {
  Secret proof{};

  friend bool operator==(const Answer&, const Answer&) = default;
};

using JoinMessage = std::variant<Challenge, Hello, Welcome, Refusal, Dial, Answer>;

struct JoinHead {
  std::uint16_t protocol = 0;
  std::uint8_t kind = 0;  // the message's place in JoinMessage
  std::uint32_t bytes = 0;
};

// Returns none for bytes without the magic. Requires: kJoinHeadBytes of them.
std::optional<JoinHead> parse_head(std::string_view bytes);
// Returns none for anything but the whole body of a message of that kind in this protocol.
std::optional<JoinMessage> parse_body(std::uint8_t kind, std::string_view body);
// Returns head and body.
std::string to_bytes(const JoinMessage& message);

// A message that carries a proof ends with it; the proof vouches for the body before it.
std::string_view vouched_part(std::string_view body);

}  // namespace frazil
