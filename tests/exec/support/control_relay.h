#pragma once
// Stands between a leader and a member and hands on, message by message, what they say, so that a
// test can end either of them at a message of its choice.

#include <functional>
#include <map>
#include <string>
#include <thread>

#include "exec/control/control_socket.h"

namespace frazil {

class ControlRelay {
 public:
  enum class Verdict { kPass, kCutBefore, kCutAfter };  // the message is lost, or the last one
  // Is asked of each message but heartbeats, by name: "take" and "step" are jobs of the leader's,
  // "take done" and "step done" the member's answers, and there are "ready" and "commit".
  using Judge = std::function<Verdict(const std::string& message)>;
  // Cuts off who is to end; the relay itself ends with it.
  using Cut = std::function<void()>;

  ControlRelay(Judge judge, Cut cut);
  // Requires: both other ends are closed.
  ~ControlRelay();
  ControlRelay(const ControlRelay&) = delete;
  ControlRelay& operator=(const ControlRelay&) = delete;

  Descriptor take_leader_end() { return std::move(leader_end_); }
  Descriptor take_member_end() { return std::move(member_end_); }

 private:
  void relay();
  bool hand_on(ControlSocket& from, ControlSocket& to);
  std::string name_of(const ControlMessage& message);

  Judge judge_;
  Cut cut_;
  Descriptor leader_end_;
  Descriptor member_end_;
  ControlSocket to_leader_;
  ControlSocket to_member_;
  std::map<std::uint64_t, std::string> jobs_;  // names, by number
  std::thread thread_;                         // last: it uses the members above
};

}  // namespace frazil
