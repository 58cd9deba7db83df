#pragma once
// Checkpointing is the durable side of a training: it opens the folder of checkpoints, goes on from
// the newest one, saves one where it is due, and tells what has become of each. In a run that keeps
// none (TrainOptions::durable) its functions do nothing.

#include <optional>

#include "exec/checkpoint/durable_run.h"
#include "exec/train/loop/phase_changes.h"
#include "exec/train/loop/training_parts.h"
#include "exec/train/processes/process_changes.h"

namespace frazil {

class Checkpointing {
 public:
  // The references must outlive this object.
  Checkpointing(TrainingParts& parts, ProcessChanges& changes, PhaseChanges& phases)
      : parts_(parts), changes_(changes), phases_(phases) {}

  // Goes on from the newest checkpoint if the run is to resume: sets TrainResult::first_step and
  // first_phase and all that a checkpoint keeps. Throws InputError for a run whose batch grows, for
  // a checkpoint beyond the end of the run, for one before the end that the run had when it was
  // given more steps, and as DurableRun does.
  void restore();
  // Opens the folder of a new run; does nothing if restore() has done so.
  void open();
  bool are_kept() const { return durable_.has_value(); }

  // Writes a step that is done to the journal. Throws ReplayMismatch, and InputError if the journal
  // cannot be written.
  void record(Step step);
  // Saves a checkpoint if one is due after so many steps, or if the run ends here: it is then there
  // when this returns. Throws Diverged if a weight or a moment is not finite, InputError if the
  // last one cannot be written; another that fails is told of.
  void save_due(Step done, bool ends_here);
  // Saves the checkpoint of the run's end.
  void save_last();
  // Waits until all is on the disk and tells of it.
  void finish(Step done);

 private:
  void save(Step done);
  void begin_at(const TrainingPosition& position);
  void refuse_what_follows_from_plans() const;
  void refuse_to_go_on(Step step) const;
  std::optional<MeasuredCosts> find_costs() const;
  TrainingPosition position_at(Step done) const;
  void tell_saved(Step now, bool is_asked_for = false);

  TrainingParts& parts_;
  ProcessChanges& changes_;
  PhaseChanges& phases_;
  std::optional<DurableRun> durable_;
};

}  // namespace frazil
