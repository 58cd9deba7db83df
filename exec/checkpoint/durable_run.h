#pragma once
// A run that survives its process: checkpoints and the step journal in one folder, which one
// process at a time holds. After a crash the run goes on from its newest good checkpoint, and the
// steps that the journal has beyond it must give again, bit for bit, the losses recorded there.
// Without any checkpoint it begins anew under the same rule.

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/checkpoint/checkpoint_folder.h"
#include "exec/checkpoint/step_journal.h"
#include "exec/devices/background_jobs.h"
#include "exec/run/run.h"

namespace frazil {

// A step that is done again gave another loss or mask than it did at first.
class ReplayMismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct DurableOptions {
  std::filesystem::path folder;  // "steps.journal", "run.json" and the checkpoints
  Step every = 100;              // steps from checkpoint to checkpoint
  int keep = 2;
  bool resume = false;
  JournalOptions journal = {};
  FileSystem files = real_file_system();
  // Steps go on while records and checkpoints reach the disk, in the order in which they were made.
  bool in_background = true;
};

// What became of a save.
struct SavedCheckpoint {
  Step step = 0;
  Duration time{0};
  std::exception_ptr failure = {};  // InputError: it was not written; earlier ones are as they were
};

// The state of a run, whatever its plan, between two steps; load_run is for a run that has taken
// none, under the same or another plan, with as many or other devices.
void save_run(CheckpointFolder& folder, const Run& run, const TrainingPosition& position);
TrainingPosition load_run(Checkpoint checkpoint, Run& run);

class DurableRun {
 public:
  // Throws InputError where another process holds the folder, where it is that of another run (by
  // all that differs), or holds a run and `resume` was not asked for. `model` outlives this.
  DurableRun(const DurableOptions& options, const ModelSpec& model, const RunIdentity& identity);

  // Where the run goes on, its state being loaded into `run`; none: at the beginning.
  std::optional<TrainingPosition> restore(Run& run);
  // What a person should know of the restoring, in sentences.
  const std::vector<std::string>& notes() const { return notes_; }
  const StepJournal& journal() const { return journal_; }

  // Of a step that has just been done. Throws ReplayMismatch, and InputError when it, or one before
  // it, cannot be written.
  void record(Step step, double loss, const FreezeMask& mask);
  bool is_due(Step done) const { return done % options_.every == 0; }
  // Of the state as it is now: acknowledges all steps so far, then saves, after the save before.
  // Throws InputError where the journal cannot be written.
  void save(const Run& run, const TrainingPosition& position);
  // What has ended since the last call; a save that returned is durable once it is told of here.
  std::vector<SavedCheckpoint> take_saved();
  // The steps so far are acknowledged, and all saves have ended. Throws as save does.
  void finish();

 private:
  using Layers = std::vector<LayerState>;

  void write(const TrainingPosition& position, const Layers& layers);

  DurableOptions options_;
  std::unique_ptr<File> lock_;  // before what it guards
  CheckpointFolder checkpoints_;
  StepJournal journal_;
  std::vector<std::string> notes_;
  std::mutex mutex_;  // of the next
  std::vector<SavedCheckpoint> saved_;
  StateMemory memory_ = StateMemory::keeping();  // of the copy that is written, kept for the next
  BackgroundJobs jobs_;                          // last: they use the others
};

}  // namespace frazil
