#pragma once
// The event log of a run is written while the run lasts. It is a freeze trace
// (traces/freeze_trace.h) whose lines are handed to the system as things happen. It lacks the
// trace's costs, which are sums over steps, and has an event for every step and checkpoint besides.
// A killed run may leave a torn last line; without that line its log can be read and replayed
// (exec/train/earlier_log.h).

#include <filesystem>
#include <optional>

#include "exec/disk/file_system.h"

#include "traces/freeze_trace.h"

namespace frazil {

class EventLog {
 public:
  // Replaces what is at `path`, also a link, which is not followed; the log begins with the line of
  // `header`, marked as open, and its events. Throws what to_jsonl() throws, and InputError if the
  // file cannot be written.
  EventLog(const std::filesystem::path& path, FreezeTrace header);

  // Appends an event and hands it to the system, which may still hold it when the call returns.
  // Throws InputError for a real that is not finite, for text that is not UTF-8 and if the file
  // cannot be written. Requires: no step before that of the last event.
  void write(const FreezeEvent& event);

 private:
  std::size_t blocks_;
  FileSystem files_ = real_file_system();
  std::optional<File> file_;
};

}  // namespace frazil
