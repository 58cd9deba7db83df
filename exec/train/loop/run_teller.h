#pragma once
// RunTeller tells a person, through the callback of a training, what happens at which step and how
// far the run is.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/control/control_group.h"
#include "exec/train/trace_recorder.h"
#include "exec/train/train_result.h"

namespace frazil {

// The losses and scores of a run so far.
struct RunScores {
  int epoch = 0;          // the one under way
  double epoch_loss = 0;  // sum over the samples of the epoch so far
  std::int64_t epoch_samples = 0;
  double last_loss = 0;
  std::optional<double> accuracy;        // on the test part; none before the first evaluation
  std::optional<Validation> validation;  // the latest
  std::vector<double> gradient_squares;  // by layer, of the step before
};

class RunTeller {
 public:
  using Progress = std::function<void(const TrainProgress&)>;

  // Tells of a run of so many steps. The references must outlive this object; an empty `progress`
  // is told nothing.
  RunTeller(const Progress& progress, Step steps, const RunScores& scores, TraceRecorder& recorder)
      : progress_(progress), steps_(steps), scores_(scores), recorder_(recorder) {}

  // Tells what happens before this step; an empty event: only how far the run is. Tells first,
  // once, that the event log has ended before the run.
  void tell(Step step, const std::string& event, bool is_warning = false);
  // Takes note of how many steps are done.
  void reach(Step done) { done_ = done; }
  // Tells of a process that is not heard of. Any thread, also while a step waits for that process.
  void tell_silence(const Silence& silence) const;

 private:
  const Progress& progress_;
  Step steps_;
  const RunScores& scores_;
  TraceRecorder& recorder_;
  std::atomic<Step> done_{0};
};

}  // namespace frazil
