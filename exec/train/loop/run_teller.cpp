#include "exec/train/loop/run_teller.h"

namespace frazil {

void RunTeller::tell(Step step, const std::string& event, bool is_warning) {
  if (!progress_) return;
  if (const auto failure = recorder_.take_failure()) {
    tell(step, "the event log ends here: " + *failure, true);
  }
  progress_({step, steps_, scores_.epoch + 1, scores_.last_loss, scores_.accuracy,
             scores_.validation, event, is_warning});
}

// Scores are the loop's and may change meanwhile, so none is told.
void RunTeller::tell_silence(const Silence& silence) const {
  if (!progress_) return;
  TrainProgress now;
  now.step = done_;
  now.steps = steps_;
  now.event = silence.sentence;
  now.is_warning = true;
  progress_(now);
}

}  // namespace frazil
