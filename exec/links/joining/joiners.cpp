#include "exec/links/joining/joiners.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

// More callers wait at the socket until these are served, a few seconds at most.
constexpr std::size_t kMostCallers = 256;
// Where no descriptor is free for a caller: until the next one is tried.
constexpr auto kPause = std::chrono::seconds(1);

// Closes a connection so that the words sent before arrive: what the caller has sent and nobody has
// read would make the system drop them.
void hang_up(Descriptor& socket) {
  ::shutdown(socket.number(), SHUT_WR);
  std::array<char, 4096> rest{};
  for (int i = 0; i < 16 && ::recv(socket.number(), rest.data(), rest.size(), 0) > 0; ++i) {
  }
  socket.close();
}

std::string differ(const std::string& what, std::uint64_t found, std::uint64_t expected) {
  return "has " + what + " (" + to_hex(found) + ", expected " + to_hex(expected) + ")";
}

}  // namespace

std::optional<std::string> find_difference(const ProcessFacts& own, const ProcessFacts& other) {
  if (other.version != own.version) {
    return "is of version " + to_one_line(other.version) + ", expected " + own.version;
  }
  if (other.build != own.build) return differ("another build", other.build, own.build);
  if (other.run != own.run) return differ("another run", other.run, own.run);
  if (other.kernels != own.kernels) {
    return differ("other kernels, which give other bits", other.kernels, own.kernels);
  }
  if (other.attempt != own.attempt) {
    return "belongs to start " + std::to_string(other.attempt) + " of the run, expected " +
           std::to_string(own.attempt);
  }
  return std::nullopt;
}

Joiners::Joiners(Descriptor listener, JoinTerms terms)
    : listener_(std::move(listener)), terms_(std::move(terms)) {}

void Joiners::admit_peers(int process, std::uint64_t epoch, const Secret& key) {
  peers_ = Peers{process, epoch, key};
}

Arrivals Joiners::accept_ready() {
  Arrivals arrivals;
  accept_callers(arrivals);
  const auto done = [&](Caller& caller) { return serve(caller, arrivals); };
  callers_.erase(std::remove_if(callers_.begin(), callers_.end(), done), callers_.end());
  return arrivals;
}

Arrivals Joiners::wait(Duration limit, int waker) {
  const auto until = JoinClock::now() + limit;
  for (;;) {
    Arrivals arrivals = accept_ready();
    const auto now = JoinClock::now();
    if (!arrivals.empty() || now >= until) return arrivals;
    auto next = until;
    std::vector<pollfd> entries{{waker, POLLIN, 0}};
    if (now < accepts_from_) {
      next = std::min(next, accepts_from_);
    } else if (callers_.size() < kMostCallers) {
      entries.push_back({listener_.number(), POLLIN, 0});
    }
    for (const Caller& caller : callers_) {
      entries.push_back({caller.socket.number(), POLLIN, 0});
      next = std::min(next, caller.until);
    }
    const auto left = std::chrono::ceil<milliseconds>(next - now).count();
    (void)::poll(entries.data(), entries.size(),
                 static_cast<int>(std::clamp<long long>(left, 0, 1000)));
    if (entries[0].revents != 0) return accept_ready();
  }
}

void Joiners::accept_callers(Arrivals& arrivals) {
  while (callers_.size() < kMostCallers && JoinClock::now() >= accepts_from_) {
    Caller caller;
    try {
      caller.socket = accept_from(listener_, kNoTime);
      if (!caller.socket.is_open()) return;
      has_told_ = false;
      const SocketAddress address = peer_of(caller.socket);
      caller.host = address.host;
      caller.name = "the process at " + to_text(address);
    } catch (const SocketError& error) {
      // No descriptor is free, or the caller has gone again: those who are here go on.
      if (!caller.socket.is_open()) {
        accepts_from_ = JoinClock::now() + kPause;
        if (!std::exchange(has_told_, true)) arrivals.refused.push_back(error.what());
        return;
      }
      continue;
    }
    caller.until = JoinClock::now() + terms_.patience;
    caller.nonce = draw_secret();
    const Challenge challenge{caller.nonce, terms_.token.has_value()};
    if (try_to_send(caller.socket, to_bytes(challenge))) callers_.push_back(std::move(caller));
  }
}

bool Joiners::serve(Caller& caller, Arrivals& arrivals) {
  switch (caller.reader.read(caller.socket)) {
    case JoinReader::State::kUnfinished:
      if (JoinClock::now() < caller.until) return false;
      turn_away(caller, "did not say in time who it is", arrivals);
      return true;
    case JoinReader::State::kClosed:
      arrivals.refused.push_back(caller.name + " closed the connection before it had joined");
      return true;
    case JoinReader::State::kForeign:
      turn_away(caller, "does not speak as a process of Frazil that joins", arrivals);
      return true;
    case JoinReader::State::kOtherProtocol:
      turn_away(caller, "speaks another version of the joining", arrivals);
      return true;
    case JoinReader::State::kWhole:
      hear(caller, arrivals);
      return true;
  }
  fail_ensure(__FILE__, __LINE__, "a reader has one of its states");
}

void Joiners::hear(Caller& caller, Arrivals& arrivals) {
  const JoinMessage& message = caller.reader.frame().message;
  if (const auto* const hello = std::get_if<Hello>(&message)) {
    hear_hello(caller, *hello, arrivals);
  } else if (const auto* const dial = std::get_if<Dial>(&message)) {
    hear_dial(caller, *dial, arrivals);
  } else {
    turn_away(caller, "does not speak as a process of Frazil that joins", arrivals);
  }
}

// The proof comes first: who has not given one is told nothing of the run.
std::optional<std::string> Joiners::find_objection(const Caller& caller, const Hello& hello) const {
  if (terms_.token.has_value() != hello.has_token) {
    return terms_.token ? "has no token" : "has a token, which this run has not";
  }
  if (!is_same_secret(hello.challenge, caller.nonce)) {
    return "answers another challenge than its own: a replayed proof";
  }
  if (terms_.token) {
    const Secret proof = make_proof(*terms_.token, ProofPurpose::kMember, caller.nonce, hello.nonce,
                                    vouched_part(caller.reader.frame().body));
    if (!is_same_secret(proof, hello.proof)) return "has another token";
  }
  return find_difference(terms_.own, hello.facts);
}

void Joiners::hear_hello(Caller& caller, const Hello& hello, Arrivals& arrivals) {
  if (!terms_.leads) {
    turn_away(caller, "asks to join a process that does not lead the run", arrivals);
    return;
  }
  if (const std::optional<std::string> objection = find_objection(caller, hello)) {
    turn_away(caller, *objection, arrivals);
    return;
  }
  Joiner joiner{.facts = hello.facts,
                .asked = hello.asked,
                .address = {caller.host, hello.port},
                .name = caller.name,
                .socket = std::move(caller.socket),
                .listener_nonce = caller.nonce,
                .caller_nonce = hello.nonce};
  arrivals.joiners.push_back(std::move(joiner));
}

void Joiners::hear_dial(Caller& caller, const Dial& dial, Arrivals& arrivals) {
  if (!is_same_secret(dial.challenge, caller.nonce)) {
    turn_away(caller, "answers another challenge than its own: a replayed proof", arrivals);
    return;
  }
  const Secret key = peers_ ? peers_->key : draw_secret();
  const std::string_view vouched = vouched_part(caller.reader.frame().body);
  const Secret proof = make_proof(key, ProofPurpose::kDialing, caller.nonce, dial.nonce, vouched);
  if (!is_same_secret(proof, dial.proof)) {
    turn_away(caller, "is no peer of this run", arrivals);
  } else if (dial.epoch != peers_->epoch || dial.to != peers_->process) {
    turn_away(caller,
              "dials process " + std::to_string(dial.to) + " in epoch " +
                  std::to_string(dial.epoch) + ", expected process " +
                  std::to_string(peers_->process) + " in epoch " + std::to_string(peers_->epoch),
              arrivals);
  } else if (try_to_send(caller.socket, to_proved_bytes(Answer{}, key, ProofPurpose::kAnswering,
                                                        caller.nonce, dial.nonce))) {
    arrivals.calls.push_back({dial.from, dial.link, std::move(caller.socket)});
  }
}

void Joiners::turn_away(Caller& caller, const std::string& what, Arrivals& arrivals) {
  const std::string sentence = caller.name + " " + what;
  (void)try_to_send(caller.socket, to_bytes(Refusal{sentence}));
  hang_up(caller.socket);
  arrivals.refused.push_back(sentence);
}

void welcome(Joiner& joiner, Welcome words, const std::optional<Secret>& token) {
  const std::string bytes =
      to_proved_bytes(std::move(words), token.value_or(Secret{}), ProofPurpose::kLeader,
                      joiner.listener_nonce, joiner.caller_nonce);
  send_message(joiner.socket, bytes, JoinClock::now() + std::chrono::seconds(5), joiner.name);
}

void refuse(Joiner& joiner, const std::string& what) {
  (void)try_to_send(joiner.socket, to_bytes(Refusal{joiner.name + " " + what}));
  hang_up(joiner.socket);
}

}  // namespace frazil
