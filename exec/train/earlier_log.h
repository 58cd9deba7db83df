#pragma once
// Reads the event log that an earlier process of a run has left, so that a resumed run has one
// record of all its steps. A line that is damaged costs itself, not the log.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "traces/freeze_trace.h"

namespace frazil {

struct EarlierLog {
  FreezeTrace log;             // its events before the step
  std::size_t lost_lines = 0;  // damaged ones, which are left out
};

// Reads the log at `path` up to step `first`; evaluations and checkpoints at `first` tell of steps
// before it, and stay. A torn last line is left out. Of damaged lines, masks come back from
// `masks`, which are all that were in force, and plans by the names of their files, without their
// times. Returns none if the file cannot be read or is a link, if it is of another model than
// `header` or of more steps (a run may have been given more), or if it lacks steps that no damaged
// line was of.
std::optional<EarlierLog> read_earlier_log(const std::filesystem::path& path,
                                           const FreezeTrace& header, Step first,
                                           const std::vector<FreezeEvent>& masks = {});

// Keeps a copy of the file beside it, as "<name>.damaged-<hash of its bytes>". Returns its name, or
// "" if there is no file, or a link. Throws InputError if the copy cannot be written.
std::string keep_copy(const std::filesystem::path& path);

}  // namespace frazil
