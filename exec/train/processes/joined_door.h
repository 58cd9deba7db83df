#pragma once
// How processes come to a run that listens while it goes on: the leader's side, and a member's.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "exec/links/joining/open_door.h"
#include "exec/run/run.h"
#include "exec/train/processes/run_world.h"

namespace frazil {

// The leader's side.
class JoinedDoor {
 public:
  // Takes over the door of the world. `tell` is given a sentence for each process that is turned
  // away, also by another thread.
  JoinedDoor(JoinedWorld& world, std::function<void(const std::string&)> tell);

  // Do as the functions of RunDoor. A process that finds no vacant place is refused.
  std::vector<Newcomer> let_in(std::set<int> vacant);
  ConnectJob introduce(int process, std::uint32_t epoch, const std::set<int>& others);
  // The leader's sockets to the process that has been introduced.
  std::map<int, PeerSockets> take_calls(const ConnectJob& job, const std::function<void()>& check);

 private:
  std::function<void(const std::string&)> tell_;
  std::map<int, std::string> addresses_;  // of members, where their peers reach them
  OpenDoor door_;
};

// A member's side. Takes over the door of the world, which this process does not lead.
LateSockets late_sockets_of(JoinedWorld& world);

}  // namespace frazil
