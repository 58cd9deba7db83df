#pragma once
// Compares what the event log of a run tells of its steps and checkpoints with what the journal
// recorded of them.

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/check/stored_journal.h"
#include "traces/freeze_trace.h"

namespace frazil {

struct ComparedEvents {
  Step end = 0;                       // one more than the last step that the log tells of
  std::size_t missing = 0;            // steps before that one of which it does not
  std::vector<std::string> problems;  // sentences about the log, without its name
  std::vector<std::string> notes;     // likewise
};

// Compares losses and masks of all steps that both have, and checkpoints. `journal` is null where
// there is none, or none that is whole. `has_ended`: the log and the journal are complete.
ComparedEvents compare_events(const FreezeTrace& log, const StoredJournal* journal, bool has_ended);

}  // namespace frazil
