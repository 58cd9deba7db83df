#pragma once
// A run that survives its process: checkpoints and the step journal in one folder, which one
// process at a time holds. After a crash the run goes on from its newest good checkpoint, and the
// steps that the journal has beyond that checkpoint must give again, bit for bit, the losses
// recorded there. A run without any checkpoint begins anew under the same rule. A checkpoint holds
// by itself: one that is good outranks a journal that is damaged or lost.
//
// Other kernels give other bits, so a run goes on with those that it was computed with
// (exec/checkpoint/run_kernels.h), unless a person accepts that bits differ from there on.

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/checkpoint/checkpoint_folder.h"
#include "exec/checkpoint/run_kernels.h"
#include "exec/checkpoint/step_journal.h"
#include "exec/devices/background_jobs.h"
#include "exec/run/run.h"

namespace frazil {

// Thrown when a step that is done again gives another loss or mask than the journal recorded.
class ReplayMismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct DurableOptions {
  std::filesystem::path folder;  // "steps.journal", "run.json", "kernels.json", the checkpoints
  Step every = 100;              // steps from checkpoint to checkpoint
  int keep = 2;
  bool resume = false;
  JournalOptions journal = {};
  FileSystem files = real_file_system();
  // Steps go on while records and checkpoints reach the disk, in the order in which they were made.
  bool in_background = true;
  std::optional<KernelFacts> kernels = std::nullopt;  // none: those of this process
  bool accept_other_kernels = false;                  // a resume may give other bits
};

// What a person should know about the restoring of a run, in a sentence.
struct RestoreNote {
  std::string text;
  bool is_warning = false;  // something is damaged, or bits may differ
};

// The outcome of a save.
struct SavedCheckpoint {
  Step step = 0;
  Duration time{0};
  std::exception_ptr failure = {};  // InputError: not written; earlier checkpoints are as they were
};

class DurableRun {
 public:
  // Opens the folder and takes its lock. Throws InputError if another process holds the folder, if
  // it is the folder of another run (naming all that differs), if it holds a run and `resume` was
  // not asked for, or one of other kernels that were not accepted. `model` outlives this object.
  DurableRun(const DurableOptions& options, const ModelSpec& model, const RunIdentity& identity);

  // Loads the newest good checkpoint into `run` and returns where the run goes on; none if it
  // begins anew.
  std::optional<TrainingPosition> restore(Run& run);
  const std::vector<RestoreNote>& notes() const { return notes_; }
  const StepJournal& journal() const { return journal_; }
  const std::vector<RunKernels>& kernels() const { return kernels_; }  // one after another

  // Records a step that has just been done. Throws ReplayMismatch, and InputError if this record or
  // one before it cannot be written.
  void record(Step step, double loss, const FreezeMask& mask);
  bool is_due(Step done) const { return done % options_.every == 0; }
  // Saves a copy of the present state: records the hash of the weights, acknowledges all steps so
  // far, then writes the checkpoint, after the save before has ended. Throws InputError if the
  // journal cannot be written, and ReplayMismatch if it has other weights.
  void save(Run& run, const TrainingPosition& position);
  // Returns the saves that have ended since the last call. A checkpoint is durable once it is told
  // of here without a failure.
  std::vector<SavedCheckpoint> take_saved();
  // Returns when the steps so far are acknowledged and all saves have ended. Throws as save does.
  void finish();

 private:
  using Layers = std::vector<LayerState>;

  void begin_kernels();
  void begin_unknown_kernels(Step step);
  void note_journal();
  void enter_kernels(Step step);
  void record_weights(Step done, const Layers& layers);
  void write(const TrainingPosition& position, const Layers& layers);

  DurableOptions options_;
  std::unique_ptr<File> lock_;  // stands before what it guards
  KernelFacts present_;
  std::vector<RunKernels> kernels_;
  std::string doubt_;  // why steps that are done again may give other bits; empty: they may not
  CheckpointFolder checkpoints_;
  StepJournal journal_;
  std::vector<RestoreNote> notes_;
  std::mutex mutex_;  // guards saved_
  std::vector<SavedCheckpoint> saved_;
  // Holds the copy that is written, kept for the next one.
  StateMemory memory_ = StateMemory::keeping();
  BackgroundJobs jobs_;  // last: they use the members above
};

}  // namespace frazil
