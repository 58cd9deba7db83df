#include "exec/links/joining/peer_calls.h"

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

// Peers listen before they say hello, so who cannot be reached is gone or cut off; whether the run
// goes on at all is the leader's to say.
Descriptor connect_to_peer(const DialOptions& options, const SocketAddress& address,
                           JoinClock::time_point until, const std::string& who) {
  for (;;) {
    if (options.check) options.check();
    try {
      const auto slice = std::min<Duration>(left_until(until), milliseconds(100));
      return connect_to(address, {options.from.host, 0}, slice);
    } catch (const SocketError& error) {
      if (JoinClock::now() < until) continue;
      throw PeerLost(who + " cannot be reached: " + error.what());
    }
  }
}

Descriptor dial(const DialOptions& options, int number, const SocketAddress& address,
                LinkSocket link, JoinClock::time_point until) {
  const std::string who = "process " + std::to_string(number) + " at " + to_text(address);
  Descriptor socket = connect_to_peer(options, address, until, who);
  const JoinFrame first = receive_message(socket, until, who, options.check);
  const auto* const challenge = std::get_if<Challenge>(&first.message);
  if (challenge == nullptr) throw PeerLost(who + " does not challenge who dials it");
  Dial words{.epoch = options.epoch,
             .from = options.process,
             .to = number,
             .link = link,
             .challenge = challenge->nonce,
             .nonce = draw_secret()};
  send_message(
      socket,
      to_proved_bytes(words, options.key, ProofPurpose::kDialing, challenge->nonce, words.nonce),
      until, who);
  const JoinFrame second = receive_message(socket, until, who, options.check);
  if (const auto* const refusal = std::get_if<Refusal>(&second.message)) {
    throw PeerLost(who + " refuses: " + to_one_line(refusal->sentence));
  }
  const auto* const answer = std::get_if<Answer>(&second.message);
  const Secret proof = make_proof(options.key, ProofPurpose::kAnswering, challenge->nonce,
                                  words.nonce, vouched_part(second.body));
  if (answer == nullptr || !is_same_secret(answer->proof, proof)) {
    throw PeerLost(who + " does not prove that it belongs to this run");
  }
  return socket;
}

}  // namespace

Secret session_key(const std::optional<Secret>& token, const Secret& session) {
  return make_proof(token.value_or(Secret{}), ProofPurpose::kSession, session, Secret{}, "");
}

PeerSockets dial_peer(const DialOptions& options, int number, const SocketAddress& address,
                      JoinClock::time_point until) {
  PeerSockets sockets;
  sockets.steps = dial(options, number, address, LinkSocket::kSteps, until);
  sockets.bulk = dial(options, number, address, LinkSocket::kBulk, until);
  return sockets;
}

void accept_calls(Joiners& door, const std::vector<int>& expected, std::vector<PeerSockets>& peers,
                  JoinClock::time_point until, const std::function<void(Arrivals&)>& check) {
  const auto is_missing = [&](int number) {
    return !peers[static_cast<std::size_t>(number)].are_open();
  };
  for (;;) {
    const auto missing = std::find_if(expected.begin(), expected.end(), is_missing);
    if (missing == expected.end()) return;
    if (JoinClock::now() >= until) {
      throw PeerLost("process " + std::to_string(*missing) +
                     " did not connect to its peers in time");
    }
    Arrivals arrivals = door.wait(std::min<Duration>(left_until(until), milliseconds(100)));
    for (PeerCall& call : arrivals.calls) {
      if (std::count(expected.begin(), expected.end(), call.from) == 0) continue;
      PeerSockets& sockets = peers[static_cast<std::size_t>(call.from)];
      (call.link == LinkSocket::kSteps ? sockets.steps : sockets.bulk) = std::move(call.socket);
    }
    arrivals.calls.clear();
    check(arrivals);
  }
}

}  // namespace frazil
