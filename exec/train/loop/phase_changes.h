#pragma once
// PhaseChanges changes the phase of a training between two steps: it asks who decides on freezing,
// makes the transition to the plan for the mask, and records the phase that begins beside what is
// predicted of it. TrainResult::phases has the phases; its last one is in force.

#include <functional>
#include <string>

#include "exec/train/loop/training_parts.h"
#include "exec/train/processes/process_changes.h"

namespace frazil {

class PhaseChanges {
 public:
  // `begin_files` is called when the first plan is in force, before anything of the run is written.
  // The references must outlive this object.
  PhaseChanges(TrainingParts& parts, ProcessChanges& changes, std::function<void()> begin_files)
      : parts_(parts), changes_(changes), begin_files_(std::move(begin_files)) {}

  // Decides about the mask of step `step` when the step before is done. If that step has taken
  // several places, from `first` on, decides about each place.
  void decide(Step first, Step step);
  // Puts what was decided in force before this step, under a new phase if the mask is another.
  // Requires: decide() was called for this step. Throws InfeasibleError if no plan fits the first
  // mask.
  void follow_policy(Step step);
  // Ends the phase in force, makes the transition and begins the phase of the plan that it gives.
  // A phase may begin inside an epoch.
  void change_phase(Step step, const std::function<ElasticPlan::Transitioned()>& transition);
  // Keeps the phase in force as it stands (TrainOptions::keep_phase), if the run is durable.
  void keep_phase();
  // Returns the record of the memory that is predicted for the phase in force.
  const MemoryRecord& predicted_memory() const { return predicted_memory_; }

 private:
  void begin_phase(Step step, ElasticPlan::Transitioned begun_phase);
  void begin_run(Step step);
  void foresee(Step step, Step within);
  void note_decision(Step step);
  void note_devices(Step step, const Plan& plan);

  TrainingParts& parts_;
  ProcessChanges& changes_;
  std::function<void()> begin_files_;
  MemoryRecord predicted_memory_;
  FreezeControl::Decided decided_;
  std::string decided_by_;  // author of the decision before
  Step foreseen_ = 0;       // when the next mask was last looked for
};

}  // namespace frazil
