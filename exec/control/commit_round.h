#pragma once
// Makes a step whole or undone over all processes of a run. A device that has reduced its gradients
// votes before it updates weights, and waits. When all devices of all processes have voted, the
// leader commits: all update. If one is lost before that, the step is undone: nobody has updated.
// One that is lost later changes nothing, since whoever still lives has all that it needs. So no
// two devices of a run go on with different numbers of updates: a process that fails after the
// commit, or gives up waiting for it, counts as lost.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "exec/communication/communicator.h"
#include "profiles/error.h"
#include "profiles/units.h"

namespace frazil {

// The outcome of a step that no device has done: its cause is the sentence.
class StepUndone : public PeerLost {
 public:
  using PeerLost::PeerLost;
};

// The votes of the devices of one process.
class CommitRound {
 public:
  // `tell_ready` is called with the step and the notes of all votes when the last device votes.
  using TellReady = std::function<void(Step, std::vector<std::string> notes)>;
  // Takes what other processes say, until what is asked for holds or a moment is over.
  using LookUntil = std::function<void(const std::function<bool()>& holds)>;
  explicit CommitRound(TellReady tell_ready, LookUntil look_until = {})
      : tell_ready_(std::move(tell_ready)), look_until_(std::move(look_until)) {}

  // Lets threads that wait for other processes look for a moment before they sleep, which is only
  // good where each has a core. Between steps.
  void let_spin() { spins_ = true; }
  bool spins() const { return spins_ && look_until_; }

  // Enters a new world, in which nothing has been undone yet.
  void renew();
  // Begins a step in which so many devices of this process vote.
  void begin(Step step, int voters);
  // Returns when the step is committed. Throws StepUndone if it is undone, PeerLost if no verdict
  // comes within the limit. Called by the thread of each device. `note` reaches the leader with the
  // vote, so that it is known even if the process is lost after the commit.
  void vote(DeviceId device, Step step, const WaitLimit& limit, std::string note = {});
  // Give the verdict, from any thread. A commit of another step than the present one is not heard.
  // An undo leaves a step done that is committed, and undoes all that follow in this world.
  void commit(Step step);
  void undo(const std::string& cause);

 private:
  bool is_decided() const;

  TellReady tell_ready_;
  LookUntil look_until_;
  bool spins_ = false;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable decided_;
  Step step_ = 0;
  int voters_ = 0;
  std::vector<std::string> notes_;  // of those who have voted
  bool is_committed_ = false;
  std::optional<std::string> undone_;  // the cause
};

}  // namespace frazil
