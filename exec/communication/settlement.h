#pragma once
// Makes all processes of a world end it for one cause. A process with a cause proposes it to all
// others; who reads a proposal answers, and of several the one of the lowest process counts. Once a
// proposer has the answers of all, the cause is settled and told. A process that computes meanwhile
// answers nothing: after a moment the cause is settled without it, and it adopts that as soon as it
// reads.
//
// Two processes can only come to different causes if neither hears of the other's for the moment.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>

#include "exec/communication/world_cause.h"
#include "exec/communication/world_links.h"

namespace frazil {

class Settlement {
 public:
  // Tells `adopt` the cause, each time it changes until it is settled.
  Settlement(const WorldLinks& links, std::uint32_t epoch, int process, std::set<int> others,
             std::function<void(const WorldCause&)> adopt);

  // The cause of this process, which has just ended the world for it.
  void propose(const WorldCause& cause);
  // A cause that every process finds by itself in the same words: settled at once.
  void declare(const WorldCause& cause);
  void take_cause(int process, bool is_settled, const WorldCause& cause);
  void take_answer(int process);
  // A lost process answers no more.
  void lose(int process);
  // Returns when the cause is settled. Requires: there is one, or a thread of this process is about
  // to propose it. The moment counts as in exec/devices/tick_count.h, so that a process that had no
  // core for that long still hears what the others say.
  void wait();

 private:
  void begin(int proposer, const WorldCause& cause);
  void tell(int process, bool is_settled) const;
  void settle_if_heard();
  void settle();

  const WorldLinks* links_;
  std::uint32_t epoch_;
  int process_;
  std::set<int> others_;
  std::function<void(const WorldCause&)> adopt_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable settled_;
  std::optional<int> proposer_;
  WorldCause cause_;
  std::set<int> awaited_;  // processes that have not answered
  bool proposes_ = false;
  bool is_settled_ = false;
};

}  // namespace frazil
