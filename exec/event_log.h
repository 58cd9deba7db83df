#pragma once
// The log of a run, written while it lasts: a freeze trace (traces/freeze_trace.h) whose lines are
// handed to the system as things happen, besides the trace's own events (but for costs, which are
// sums over steps) one for every step, evaluation and checkpoint. What a killed run leaves is a
// trace that can be read and replayed, but for a line that is torn.

#include <filesystem>
#include <fstream>

#include "traces/freeze_trace.h"

namespace frazil {

class EventLog {
 public:
  // Of a run that begins with the step `first`; of an earlier log of the same model at `path` the
  // events before it are kept where it is not 0. Throws InputError.
  EventLog(std::filesystem::path path, FreezeTrace header, Step first);

  // Throws InputError where it cannot be written.
  void write(const FreezeEvent& event);

 private:
  std::filesystem::path path_;
  std::size_t blocks_;
  std::ofstream file_;
};

}  // namespace frazil
