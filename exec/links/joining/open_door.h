#pragma once
// The leader's door while the run goes on. A thread of its own serves whoever knocks, so that a
// long step keeps nobody waiting and nobody outside holds up a step; the run asks between two steps
// who has come. A process that comes late gets its number at once, and its connections when the run
// takes it in: then it dials all others (exec/links/joining/late_peers.h).

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/links/descriptor.h"
#include "exec/links/joining/joined_world.h"

namespace frazil {

class OpenDoor {
 public:
  // Takes over the door of a world that this process leads. `tell` is given a sentence for each
  // caller that was turned away, by the thread of this object; may be empty.
  OpenDoor(JoinedWorld& world, std::function<void(const std::string&)> tell);
  ~OpenDoor();
  OpenDoor(const OpenDoor&) = delete;
  OpenDoor& operator=(const OpenDoor&) = delete;

  // Returns those who have proved since the last call that they belong to the run, in the order of
  // coming. Never waits.
  std::vector<Joiner> take_joiners();
  // Gives one of them its number. Throws PeerLost if it has gone. Its socket is then the control
  // connection, and its peers reach it at its address.
  void welcome(Joiner& joiner, int number);
  // From now on peers may dial in this epoch.
  void expect_calls(std::uint64_t epoch);
  // Waits for both connections of a process that dials. Throws PeerLost after `limit`, and what
  // `check` throws, which is called several times a second.
  PeerSockets take_calls(int number, Duration limit, const JoinCheck& check);

 private:
  void serve();
  void wake() const;

  std::unique_ptr<Joiners> door_;  // the thread's
  Secret session_;
  std::optional<Secret> token_;
  std::function<void(const std::string&)> tell_;
  Descriptor waker_;
  std::mutex mutex_;  // guards all below but the last
  std::condition_variable changed_;
  std::vector<Joiner> joiners_;
  std::map<int, PeerSockets> calls_;  // in the epoch
  std::uint64_t epoch_ = 0;
  std::uint64_t served_epoch_ = 0;
  bool ends_ = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace frazil
