#pragma once
// The event log of a run is written while the run lasts. It is a freeze trace
// (traces/freeze_trace.h) whose lines are handed to the system as things happen. It lacks the
// trace's costs, which are sums over steps, and has an event for every step and checkpoint besides.
// A killed run may leave a torn last line; without that line its log can be read and replayed.

#include <filesystem>
#include <fstream>
#include <optional>

#include "traces/freeze_trace.h"

namespace frazil {

// Returns the log at `path`, which an earlier process has left, with its events before step `first`
// alone; evaluations and checkpoints at `first` tell of steps before it, and stay. A torn last line
// is left out. Returns none if the file cannot be read, if its model is not that of `header` or its
// number of steps is larger (a run may have been given more), or if it does not have each step
// before `first` once and in order.
std::optional<FreezeTrace> read_earlier_log(const std::filesystem::path& path,
                                            const FreezeTrace& header, Step first);

class EventLog {
 public:
  // Replaces what is at `path`; the log begins with the line of `header`, marked as open, and its
  // events. Throws what to_jsonl() throws, and InputError if the file cannot be written.
  EventLog(std::filesystem::path path, FreezeTrace header);

  // Appends an event and hands it to the system, which may still hold it when the call returns.
  // Throws InputError for a real that is not finite, for text that is not UTF-8 and if the file
  // cannot be written. Requires: no step before that of the last event.
  void write(const FreezeEvent& event);

 private:
  std::filesystem::path path_;
  std::size_t blocks_;
  std::ofstream file_;
};

}  // namespace frazil
