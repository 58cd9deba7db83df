#pragma once
// What a run gets ready for its next transition while it trains, each in a thread of its own: for
// the mask that its freeze policy is expected to want next, the planner's answers, and the memory
// that going there will copy into. Where another mask comes, or none, time was spent and nothing
// else is different: plans are what they would have been.

#include <optional>

#include "exec/devices/background_jobs.h"
#include "exec/run/run.h"
#include "exec/train/replanner.h"

namespace frazil {

class Preparation {
 public:
  // References outlive this.
  Preparation(Replanner& replanner, const Run& run) : replanner_(replanner), run_(run) {}

  // Between two steps: this mask is expected next; none: nothing is. May be told again.
  void expect(const std::optional<FreezeMask>& mask);
  // Between two steps: the planner is being asked, or memory for its plan is being reserved.
  void go_on();
  // Before a transition: waits for memory that is being reserved. Nothing is expected any more.
  void end();

 private:
  Replanner& replanner_;
  const Run& run_;
  std::optional<FreezeMask> mask_;  // expected
  bool is_reserved_ = false;
  BackgroundJobs jobs_{true};
};

}  // namespace frazil
