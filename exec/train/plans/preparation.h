#pragma once
// Preparation gets a run ready for its next transition while it trains. Two threads work for the
// mask that the freeze policy is expected to want next: one asks the planner, one reserves the
// memory that the transition will copy into. If another mask comes, or none, the run has spent time
// and keeps reserved memory that it may not need; its plans and results are what they would have
// been. In a run that is not elastic nothing is prepared.

#include <optional>

#include "exec/devices/background_jobs.h"
#include "exec/run/run.h"
#include "exec/train/plans/replanner.h"

namespace frazil {

class Preparation {
 public:
  // The references must outlive this object.
  Preparation(Replanner& replanner, const Run& run) : replanner_(replanner), run_(run) {}

  // Names the mask that is expected next, or none, and asks the planner if it is not busy with
  // another mask. Must be called between two steps, and may be called again.
  void expect(const std::optional<FreezeMask>& mask);
  // Begins what can be begun, and never waits: it asks the planner if that was busy before, or
  // reserves memory for the plan that the planner has found. Must be called between two steps.
  void go_on();
  // Waits for memory that is being reserved and forgets the expected mask; a search that has begun
  // goes on. Must be called before a transition.
  void end();

 private:
  Replanner& replanner_;
  const Run& run_;
  std::optional<FreezeMask> mask_;  // expected
  bool is_reserved_ = false;        // the reservation for mask_ has begun
  BackgroundJobs jobs_{true};
};

}  // namespace frazil
