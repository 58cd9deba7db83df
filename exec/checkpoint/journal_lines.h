#pragma once
// clang-format off
// The text of a step journal, lines of 64 bytes. The first names the run:
//   "frazil.step_journal v2        <hash of the run> <hash of the line>\n"
// Each other line is "<step, 12 digits> <16 bytes> <16 bytes> <hash of the line>\n"; numbers of 16
// bytes are hex digits, words are filled up with spaces:
//   <bits of the loss> <hash of the mask>      of this step
//   weights            <hash of the weights>   after so many steps (hash_weights in durable_run.h)
//   kernels            <hash of the kernels>   in use from this step on (run_kernels.h)
//   other-kernels      <hash of the kernels>   likewise; bits differ from there on, so lines before
//                                              of this and later steps, and of weights behind it,
//                                              do not count any more
//   lost               <number of steps>       from this one on, whose lines were damaged
// The hash of a line is XXH64 of what stands before it in its line, seeded by the hash of the line
// before: a line holds only after the lines it was written after.
// clang-format on

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct JournalRecord {
  Step step = 0;
  std::uint64_t loss_bits = 0;
  std::uint64_t mask_hash = 0;
  friend bool operator==(const JournalRecord&, const JournalRecord&) = default;
};

enum class JournalKind { kStep, kWeights, kKernels, kOtherKernels, kLost };

struct JournalLine {
  JournalKind kind = JournalKind::kStep;
  Step step = 0;
  std::uint64_t loss_bits = 0;  // of a step alone
  std::uint64_t value = 0;      // the hash, or the number of steps lost
  friend bool operator==(const JournalLine&, const JournalLine&) = default;
};

// What the lines of a journal say together.
struct JournalContents {
  std::vector<JournalRecord> records;     // by step; those of lost steps are missing
  std::map<Step, std::uint64_t> weights;  // by steps done
  std::vector<JournalLine> kernels;       // lines of these kinds, one after another
  Step steps = 0;                         // recorded and lost ones
  friend bool operator==(const JournalContents&, const JournalContents&) = default;
};

// What a text is that should be the journal of a run.
struct JournalReading {
  bool is_of_another_run = false;
  // More does not hold than one line at the end, which is all that a crash tears.
  bool is_damaged = false;
  std::size_t whole_bytes = 0;  // before the first line that does not hold
  JournalContents contents;     // of all lines that hold
  std::uint64_t last_hash = 0;  // of the last line of the whole bytes
};

inline constexpr std::size_t kJournalLineBytes = 64;

std::string journal_header(std::uint64_t run_hash);
// Requires: a step below 10^12. `seed` is the hash of the line before.
std::string journal_line(const JournalLine& line, std::uint64_t seed);
std::uint64_t hash_in_line(std::string_view line);  // of a line that holds

// Reads the lines that hold. One flipped bit costs the record of one step at most. Lines of a text
// whose first line does not hold count only if they follow from the first line of this run.
JournalReading read_journal(std::string_view text, std::uint64_t run_hash);
// Returns a journal that says this, with its lost steps. read_journal() gives the contents back.
std::string journal_text(const JournalContents& contents, std::uint64_t run_hash);
// Adds what an appended line says, apart from the records of steps. Requires: a line that
// continues the contents.
void add_line(const JournalLine& line, JournalContents& contents);

}  // namespace frazil
