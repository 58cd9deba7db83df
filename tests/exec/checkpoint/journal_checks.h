#pragma once
// Reads the journals that tests expect to be whole, and compares what two of them say.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "exec/checkpoint/read_journal.h"

namespace frazil {

// Returns what a journal says that has no damaged and no torn line.
inline JournalContents read_whole_journal(const std::string& text, std::uint64_t run_hash) {
  const JournalReading reading = read_journal(text, run_hash);
  EXPECT_FALSE(reading.is_damaged);
  EXPECT_EQ(reading.whole_bytes, text.size());
  return reading.contents;
}

// Expects what `here` says to be what `all` says, which has a record of every step; `here` may
// leave records and hashes of weights out, but not the number of steps.
inline void expect_no_other(const JournalContents& here, const JournalContents& all) {
  EXPECT_EQ(here.steps, all.steps);
  for (const JournalRecord& record : here.records) {
    EXPECT_EQ(record, all.records.at(static_cast<std::size_t>(record.step)));
  }
  for (const auto& [step, hash] : here.weights) {
    const auto other = all.weights.find(step);
    EXPECT_EQ(hash, other == all.weights.end() ? hash : other->second) << step;
  }
}

}  // namespace frazil
