#pragma once
// A run that survives its process: checkpoints and the step journal in one folder, which one
// process at a time holds. After a crash the run goes on from its newest good checkpoint, and the
// steps that the journal has beyond it must give again, bit for bit, the losses recorded there.
// Without any checkpoint it begins anew under the same rule.

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/checkpoint/checkpoint_folder.h"
#include "exec/checkpoint/step_journal.h"
#include "exec/run.h"

namespace frazil {

// A step that is done again gave another loss or mask than it did at first.
class ReplayMismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct DurableOptions {
  std::filesystem::path folder;  // "steps.journal" and the checkpoints
  Step every = 100;              // steps from checkpoint to checkpoint
  int keep = 2;
  bool resume = false;
  JournalOptions journal = {};
  FileSystem files = real_file_system();
};

// The state of a run, whatever its plan, between two steps; load_run is for a run that has taken
// none, under the same or another plan, with as many or other devices.
void save_run(CheckpointFolder& folder, const Run& run, const TrainingPosition& position);
TrainingPosition load_run(Checkpoint checkpoint, Run& run);

class DurableRun {
 public:
  // Throws InputError where another process holds the folder, where it is that of another run, or
  // holds a run and `resume` was not asked for. `model` outlives this.
  DurableRun(const DurableOptions& options, const ModelSpec& model, const RunIdentity& identity);

  // Where the run goes on, its state being loaded into `run`; none: at the beginning.
  std::optional<TrainingPosition> restore(Run& run);
  // What a person should know of the restoring, in sentences.
  const std::vector<std::string>& notes() const { return notes_; }
  const StepJournal& journal() const { return journal_; }

  // Of a step that has just been done. Throws ReplayMismatch, and InputError when it cannot be
  // written.
  void record(Step step, double loss, const FreezeMask& mask);
  bool is_due(Step done) const { return done % options_.every == 0; }
  // Acknowledges all steps so far, then saves. Throws InputError.
  void save(const Run& run, const TrainingPosition& position);
  // The steps so far are acknowledged.
  void finish() { journal_.sync(); }

 private:
  DurableOptions options_;
  std::unique_ptr<File> lock_;  // before what it guards
  CheckpointFolder checkpoints_;
  StepJournal journal_;
  std::vector<std::string> notes_;
};

}  // namespace frazil
