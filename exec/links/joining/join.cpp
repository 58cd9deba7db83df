#include "exec/links/joining/join.h"

#include <utility>

#include "exec/links/joining/gathering.h"
#include "exec/links/joining/meeting.h"
#include "exec/links/joining/membership.h"
#include "exec/links/joining/peer_calls.h"
#include "profiles/error.h"

namespace frazil {

JoinedWorld join_world(const LaunchPlace& place, const JoinOptions& given) {
  JoinOptions options = given;
  options.facts.attempt = place.restarts;
  const auto until = JoinClock::now() + options.limit;
  if (place.is_leader()) {
    OpenMeeting meeting = open_meeting(place, options);
    return gather_world(place, options, std::move(meeting.listener), meeting.token, until);
  }
  FoundMeeting meeting = find_meeting(place, options, until);
  return become_member(place, options, std::move(meeting.leader), meeting.token, until);
}

int admit(JoinedWorld& world, Joiner joiner, std::uint64_t epoch, Duration limit) {
  ENSURE(world.leads(), "the leader lets processes in");
  const auto until = JoinClock::now() + limit;
  const int number = world.processes++;
  Welcome words{.process = number, .epoch = epoch, .session = world.session, .addresses = {}};
  for (const Member& member : world.members) words.addresses.push_back(member.address);
  words.addresses.push_back(joiner.address);
  world.peers.emplace_back();
  world.control.emplace_back();
  world.members.push_back({joiner.facts, joiner.address, name_of(number, joiner)});
  world.epoch = epoch;
  try {
    welcome(joiner, words, world.token);
    world.door->admit_peers(0, epoch, session_key(world.token, world.session));
    accept_calls(*world.door, {number}, world.peers, until, [&](Arrivals& arrivals) {
      for (Joiner& other : arrivals.joiners) world.waiting.push_back(std::move(other));
      if (is_closed(joiner.socket)) throw PeerLost(joiner.name + " has gone while it joined");
    });
  } catch (const PeerLost&) {
    forget_peer(world, number);
    throw;
  }
  world.control.back() = std::move(joiner.socket);
  return number;
}

void accept_peer(JoinedWorld& world, int number, std::uint64_t epoch, Duration limit) {
  ENSURE(!world.leads() && number >= world.processes, "a new member has the next number");
  world.processes = number + 1;
  world.peers.resize(static_cast<std::size_t>(world.processes));
  world.members.resize(static_cast<std::size_t>(world.processes));
  world.epoch = epoch;
  world.door->admit_peers(world.process, epoch, session_key(world.token, world.session));
  accept_calls(*world.door, {number}, world.peers, JoinClock::now() + limit, [&](const Arrivals&) {
    if (is_closed(world.control[0])) throw PeerLost("the leader has gone");
  });
}

void forget_peer(JoinedWorld& world, int number) {
  const auto place = static_cast<std::size_t>(number);
  world.peers.at(place) = {};
  if (!world.leads()) return;
  world.control.at(place).close();
  world.members.at(place).address = {"", 0};
}

}  // namespace frazil
