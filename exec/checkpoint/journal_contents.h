#pragma once
// What the lines of a step journal (exec/checkpoint/journal_lines.h) say together, and the text
// that says it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exec/checkpoint/journal_lines.h"
#include "profiles/units.h"

namespace frazil {

struct JournalRecord {
  Step step = 0;
  std::uint64_t loss_bits = 0;
  std::uint64_t mask_hash = 0;
  friend bool operator==(const JournalRecord&, const JournalRecord&) = default;
};

struct JournalContents {
  std::vector<JournalRecord> records;     // by step; those of lost steps are missing
  std::map<Step, std::uint64_t> weights;  // by steps done
  std::vector<JournalLine> kernels;       // lines of these kinds, one after another
  Step steps = 0;                         // recorded and lost ones
  friend bool operator==(const JournalContents&, const JournalContents&) = default;
};

// Returns whether a line continues what stands before it, if nothing is missing in between.
bool continues(const JournalLine& line, const JournalContents& contents);
// Adds what a line says, apart from the records of steps. Requires: a line that continues the
// contents.
void add_line(const JournalLine& line, JournalContents& contents);
// Forgets what is said of the steps from this one on.
void drop_from(Step step, JournalContents& contents);

// Returns a journal that says this, with its lost steps. read_journal() gives the contents back.
std::string journal_text(const JournalContents& contents, std::uint64_t run_hash);

}  // namespace frazil
