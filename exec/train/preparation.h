#pragma once
// Preparation gets a run ready for its next transition while it trains. Two threads work for the
// mask that the freeze policy is expected to want next: one asks the planner, one reserves the
// memory that the transition will copy into. If another mask comes, or none, time was spent and
// nothing else is different: plans are what they would have been.

#include <optional>

#include "exec/devices/background_jobs.h"
#include "exec/run/run.h"
#include "exec/train/replanner.h"

namespace frazil {

class Preparation {
 public:
  // The references must outlive this object.
  Preparation(Replanner& replanner, const Run& run) : replanner_(replanner), run_(run) {}

  // Names the mask that is expected next; none: nothing is expected. Must be called between two
  // steps, and may be called again.
  void expect(const std::optional<FreezeMask>& mask);
  // Begins what can be begun: asking the planner, or reserving memory for the plan that it has
  // found. Must be called between two steps.
  void go_on();
  // Waits for memory that is being reserved; must be called before a transition. Nothing is
  // expected afterwards.
  void end();

 private:
  Replanner& replanner_;
  const Run& run_;
  std::optional<FreezeMask> mask_;  // expected
  bool is_reserved_ = false;
  BackgroundJobs jobs_{true};
};

}  // namespace frazil
