#include "exec/links/joining/membership.h"

#include <utility>

#include "exec/links/joining/peer_calls.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// A member's side.
class Membership {
 public:
  Membership(const LaunchPlace& place, const JoinOptions& options, JoinClock::time_point until)
      : place_(place), options_(options), until_(until) {}

  // `leader` is connected.
  JoinedWorld join(Descriptor leader, const std::optional<Secret>& token) {
    leader_ = peer_of(leader);
    who_ = "the leader at " + to_text(leader_);
    own_ = address_of(leader);
    own_.port = 0;
    Descriptor listener = listen_at(own_);
    const std::uint16_t port = address_of(listener).port;
    world_.token = token;
    world_.door = std::make_unique<Joiners>(
        std::move(listener), JoinTerms{options_.facts, token, false, options_.patience});
    const Welcome words = say_hello(leader, port);
    world_.control.push_back(std::move(leader));
    take_place(words, port);
    if (!world_.has_come_late()) connect(words);
    return std::move(world_);
  }

 private:
  Welcome say_hello(const Descriptor& leader, std::uint16_t port) {
    const JoinFrame first = receive_message(leader, until_, who_);
    const auto* const challenge = std::get_if<Challenge>(&first.message);
    if (challenge == nullptr) throw PeerLost(who_ + " does not challenge who joins");
    if (world_.token && !challenge->wants_token) {
      throw InputError(who_, 0, "a run without a token", "one that has this process's token");
    }
    const Hello hello{.facts = options_.facts,
                      .asked = place_.process,
                      .port = port,
                      .has_token = world_.token.has_value(),
                      .challenge = challenge->nonce,
                      .nonce = draw_secret()};
    const Secret key = world_.token.value_or(Secret{});
    send_message(leader,
                 to_proved_bytes(hello, key, ProofPurpose::kMember, challenge->nonce, hello.nonce),
                 until_, who_);
    const JoinFrame second = receive_message(leader, until_, who_);
    if (const auto* const refusal = std::get_if<Refusal>(&second.message)) {
      throw InputError(who_, 0, "a refusal: " + to_one_line(refusal->sentence), "a welcome");
    }
    const auto* const words = std::get_if<Welcome>(&second.message);
    if (words == nullptr) throw PeerLost(who_ + " answers with neither welcome nor refusal");
    const Secret proof = make_proof(key, ProofPurpose::kLeader, challenge->nonce, hello.nonce,
                                    vouched_part(second.body));
    if (!is_same_secret(proof, words->proof)) {
      throw InputError(who_, 0, "a leader with another token", "one with this process's token");
    }
    return *words;
  }

  void take_place(const Welcome& words, std::uint16_t port) {
    const int processes = static_cast<int>(words.addresses.size());
    const bool is_sound = words.process > 0 && (words.process < processes || processes == 0) &&
                          (!place_.process || *place_.process == words.process);
    if (!is_sound) throw PeerLost(who_ + " gives this process a number that cannot be");
    world_.process = words.process;
    world_.processes = processes;
    world_.epoch = words.epoch;
    world_.session = words.session;
    world_.leader = leader_;
    if (processes == 0) return;
    world_.peers.resize(static_cast<std::size_t>(processes));
    world_.members.resize(static_cast<std::size_t>(processes));
    world_.members[static_cast<std::size_t>(words.process)] = {
        options_.facts, {own_.host, port}, "process " + std::to_string(words.process)};
  }

  void connect(const Welcome& words) {
    const Secret key = session_key(world_.token, world_.session);
    world_.door->admit_peers(world_.process, world_.epoch, key);
    const auto check = [this] {
      if (is_closed(world_.control[0])) {
        throw PeerLost(who_ + " has gone while the processes connected");
      }
    };
    const DialOptions dialing{world_.process, world_.epoch, key, own_, check};
    std::vector<int> higher;
    for (int number = 0; number < world_.processes; ++number) {
      // A leader that listens at every address of its host does not know which of them is seen
      // here.
      const SocketAddress& address =
          number == 0 ? leader_ : words.addresses[static_cast<std::size_t>(number)];
      if (number == world_.process || address.host.empty()) continue;
      if (number > world_.process) {
        higher.push_back(number);
      } else {
        world_.peers[static_cast<std::size_t>(number)] =
            dial_peer(dialing, number, address, until_);
      }
    }
    accept_calls(*world_.door, higher, world_.peers, until_, [&](const Arrivals&) { check(); });
  }

  const LaunchPlace& place_;
  const JoinOptions& options_;
  JoinClock::time_point until_;
  JoinedWorld world_;
  std::string who_;
  SocketAddress leader_;
  SocketAddress own_;
};

}  // namespace

JoinedWorld become_member(const LaunchPlace& place, const JoinOptions& options, Descriptor leader,
                          const std::optional<Secret>& token, JoinClock::time_point until) {
  return Membership(place, options, until).join(std::move(leader), token);
}

}  // namespace frazil
