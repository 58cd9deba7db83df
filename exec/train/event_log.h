#pragma once
// The log of a run, written while it lasts: a freeze trace (traces/freeze_trace.h) whose lines are
// handed to the system as things happen, besides the trace's own events (but for costs, which are
// sums over steps) one for every step, evaluation and checkpoint. What a killed run leaves is a
// trace that can be read and replayed, but for a line that is torn.

#include <filesystem>
#include <fstream>
#include <optional>

#include "traces/freeze_trace.h"

namespace frazil {

// What an earlier process has left at `path` of the run of `header`, which goes on with the step
// `first`: its events before that. None where they are not those of every step.
std::optional<FreezeTrace> read_earlier_log(const std::filesystem::path& path,
                                            const FreezeTrace& header, Step first);

class EventLog {
 public:
  // In the place of what is at `path`; begins with the events of `header`. Throws InputError.
  EventLog(std::filesystem::path path, FreezeTrace header);

  // Throws InputError where it cannot be written.
  void write(const FreezeEvent& event);

 private:
  std::filesystem::path path_;
  std::size_t blocks_;
  std::ofstream file_;
};

}  // namespace frazil
