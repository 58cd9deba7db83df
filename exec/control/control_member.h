#pragma once
// A member's side of a run over processes: takes jobs from the leader one after another, answers,
// votes in the commit round of every step, and ends when the leader says so or is lost.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "exec/control/commit_round.h"
#include "exec/control/control_watch.h"

namespace frazil {

class ControlMember {
 public:
  // `abort` is called, by a thread of this object, to end the job under way in this process.
  ControlMember(Descriptor leader, std::function<void(const std::string& sentence)> abort);
  ~ControlMember();

  // Waits for the next job; none: the run is over, and stopped() says how. Throws PeerLost if the
  // leader is lost.
  std::optional<OrderMessage> next();
  std::optional<StopMessage> stopped() const;
  void answer(std::uint64_t number, std::string result);
  void fail(const FailureMessage& failure);
  // Returns the sentence with which the leader has ended a job in this world, if it has.
  std::optional<std::string> cause() const;
  // Enters a new world.
  void renew();
  CommitRound& round() { return round_; }
  void set_patience(Duration patience) { watch_.set_patience(patience); }

 private:
  void hear(ControlMessage message);
  void end_job(const std::string& sentence);
  void lose(const std::string& why);

  std::function<void(const std::string&)> abort_;
  mutable std::mutex mutex_;  // guards all below but the last two
  std::condition_variable changed_;
  std::deque<OrderMessage> orders_;
  std::optional<StopMessage> stopped_;
  std::optional<std::string> lost_;   // the leader
  std::optional<std::string> cause_;  // that ended a job
  CommitRound round_;
  ControlWatch watch_;  // last: its thread uses the members above
};

}  // namespace frazil
