#pragma once
// Reads the text of a step journal (exec/checkpoint/journal_lines.h), as far as it holds.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "exec/checkpoint/journal_contents.h"

namespace frazil {

// What a text is that should be the journal of a run.
struct JournalReading {
  // That of the first line; if that does not hold, the one from whose first line the lines follow.
  // One that is not known here is above kJournalVersion, and then nothing else has been read.
  int version = kJournalVersion;
  bool is_of_another_run = false;
  // More does not hold than one line at the end, which is all that a crash tears.
  bool is_damaged = false;
  std::size_t whole_bytes = 0;  // before the first line that does not hold
  JournalContents contents;     // of all lines that hold
  std::uint64_t last_hash = 0;  // of the last line of the whole bytes
};

// Reads the lines that hold, of version 1 or 2. One flipped bit costs the record of one step at
// most. Lines of a text whose first line does not hold count only if they follow from the first
// line of this run.
JournalReading read_journal(std::string_view text, std::uint64_t run_hash);

}  // namespace frazil
