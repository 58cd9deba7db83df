#pragma once
// Tasks under way at rates that change. The rest of each task is kept exactly, so a task ends at
// the first whole nanosecond at which nothing remains, however often its rate has changed. The work
// of a task is price x rate drawn alone (ns x units per second); a rate of a/b does a/b of it per
// ns.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/event_queue.h"
#include "sim/fair_shares.h"
#include "sim/sharing.h"

namespace frazil {

class Flows {
 public:
  // `sharing` must outlive this.
  explicit Flows(const Sharing& sharing);

  // Starts a task. Requires: the work is shared; price > 0.
  void start(TaskId task, WorkId work, std::int64_t price, std::int64_t now);
  // Brings rates up to date. Pushes an event, with what = FlowId, for each task that ends earlier
  // than its events in the queue say.
  void settle(std::int64_t now, EventQueue& queue);
  // Returns true and removes the task if the task of a popped event ends now. An end that has moved
  // meanwhile is pushed again or passed over.
  bool ends(const Event& event, EventQueue& queue);

  // True if some rate or rest was too fine a fraction and was rounded, by less than 2^-31 of a
  // unit.
  bool rounded() const { return rounded_ || shares_.rounded(); }

 private:
  struct Flow {
    TaskId task = 0;
    WideInteger left = 0;    // work left at `since`, in 1/unit
    WideInteger per_ns = 0;  // work done per ns, in 1/unit
    std::int64_t unit = 1;
    std::int64_t since = 0;  // ns
    std::int64_t end = 0;
    std::int64_t pushed = 0;  // the time of the flow's earliest event in the queue
  };

  void change_rate(Flow& flow, const Rate& rate, std::int64_t now);

  const Sharing& sharing_;
  FairShares shares_;
  std::vector<Flow> flows_;
  std::vector<FlowId> free_;
  bool rounded_ = false;
};

}  // namespace frazil
