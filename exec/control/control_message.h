#pragma once
// What the leader of a run and its members tell each other. One process leads: it decides what is
// done, and the others, its members, do it with it. Messages are few and small; tensors go between
// devices (exec/communication). A message has a head of 12 bytes {magic "FZCT", version 1 (16
// bits), 0 (16 bits), bytes of the body} and a body of at most 16 MiB, written as
// exec/control/wire.h says.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "exec/control/wire.h"
#include "profiles/units.h"

namespace frazil {

// From the leader: a job for all devices of a member (exec/run/jobs/jobs.h, as bytes).
struct OrderMessage {
  std::uint64_t number = 0;
  std::string job;
};

// From a member: the result of a job.
struct AnswerMessage {
  std::uint64_t number = 0;
  std::string result;
};

// The kinds of failure that keep their exit code on their way to the leader.
enum class FaultKind : std::uint8_t {
  kOther,
  kBug,
  kBadInput,
  kInfeasible,
  kOutOfMemory,
  kDeviceLost,
  kPeerLost,
  kUndone,
};

template <>
struct WireEnum<FaultKind> {
  static constexpr FaultKind last = FaultKind::kUndone;
};

// From a member: the failure of a job, in one sentence.
struct FailureMessage {
  std::uint64_t number = 0;
  FaultKind kind = FaultKind::kOther;
  std::string sentence;
};

// From a member: all its devices have reduced the gradients of a step, and wait.
struct ReadyMessage {
  Step step = 0;
  std::vector<std::string> notes;  // of its devices
};

// From the leader: all are ready, so that all update their weights.
struct CommitMessage {
  Step step = 0;
};

// From the leader: the job under way ends here, for this cause. Nobody updates weights in it.
struct AbortMessage {
  std::string sentence;
};

// Both ways, every tenth of a second: the process lives.
struct BeatMessage {
  std::int64_t sent_ns = 0;      // by the sender's steady clock
  std::int64_t answers_ns = -1;  // the `sent_ns` of the last beat received; -1: none since
  std::int64_t heard_ns = -1;    // when that beat came, by the sender's clock
};

// From the leader: the run is over for the member, which ends with this exit code.
// The code of a StopMessage to a member that is to join again: the run goes on from its newest
// checkpoint.
inline constexpr int kJoinAgain = -1;

struct StopMessage {
  std::int32_t code = 0;
  std::string sentence;
};

using ControlMessage = std::variant<OrderMessage, AnswerMessage, FailureMessage, ReadyMessage,
                                    CommitMessage, AbortMessage, BeatMessage, StopMessage>;

inline constexpr std::size_t kControlHead = 12;
inline constexpr std::size_t kLargestControlBody = std::size_t{16} << 20;

// Returns head and body. Requires: no more than kLargestControlBody.
std::string to_bytes(const ControlMessage& message);

// Takes one message off the beginning of `bytes`; none if it is not all there yet. Throws WireError
// for what no message begins with, whatever comes after it.
std::optional<ControlMessage> take_message(std::string_view& bytes);

template <class A>
void archive(A& a, OrderMessage& m) {
  a(m.number, m.job);
}
template <class A>
void archive(A& a, AnswerMessage& m) {
  a(m.number, m.result);
}
template <class A>
void archive(A& a, FailureMessage& m) {
  a(m.number, m.kind, m.sentence);
}
template <class A>
void archive(A& a, ReadyMessage& m) {
  a(m.step, m.notes);
}
template <class A>
void archive(A& a, CommitMessage& m) {
  a(m.step);
}
template <class A>
void archive(A& a, AbortMessage& m) {
  a(m.sentence);
}
template <class A>
void archive(A& a, BeatMessage& m) {
  a(m.sent_ns, m.answers_ns, m.heard_ns);
}
template <class A>
void archive(A& a, StopMessage& m) {
  a(m.code, m.sentence);
}

}  // namespace frazil
