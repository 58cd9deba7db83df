#pragma once
// The event log of a run is written while the run lasts. It is a freeze trace
// (traces/freeze_trace.h) whose lines are handed to the system as things happen. It lacks the
// trace's costs, which are sums over steps, and has an event for every step, evaluation and
// checkpoint besides. A killed run leaves a trace that can be read and replayed, except for a torn
// last line.

#include <filesystem>
#include <fstream>
#include <optional>

#include "traces/freeze_trace.h"

namespace frazil {

// Returns the events before the step `first` that an earlier process has left at `path`, for the
// run of `header`, which goes on with that step. Returns none if they are not those of every step.
std::optional<FreezeTrace> read_earlier_log(const std::filesystem::path& path,
                                            const FreezeTrace& header, Step first);

class EventLog {
 public:
  // Replaces what is at `path`; the log begins with the events of `header`. Throws InputError.
  EventLog(std::filesystem::path path, FreezeTrace header);

  // Appends an event. Throws InputError if the file cannot be written.
  void write(const FreezeEvent& event);

 private:
  std::filesystem::path path_;
  std::size_t blocks_;
  std::ofstream file_;
};

}  // namespace frazil
