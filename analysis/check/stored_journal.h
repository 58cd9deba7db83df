#pragma once
// Reads the step journal of a run by its format alone (docs/formats.md), line after line, and
// changes nothing. It shares no code with what writes journals.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct StoredStep {
  std::uint64_t loss_bits = 0;
  std::uint64_t mask_hash = 0;
};

struct StoredJournal {
  std::uint64_t run_hash = 0;
  std::map<Step, StoredStep> records;     // of steps that still count
  std::map<Step, std::uint64_t> weights;  // hash, by steps done
  std::uint64_t kernels = 0;              // hash of the last; 0: none is named
  std::vector<Step> other_bits_from;      // steps from which on bits were allowed to differ
  Step steps = 0;                         // recorded and lost ones
  Step lost = 0;                          // steps without a record
  std::vector<std::string> problems;      // sentences: what does not hold
  std::vector<std::string> notes;         // what holds, and is worth a word
};

// Throws InputError if the file cannot be read.
StoredJournal read_stored_journal(const std::filesystem::path& path);

}  // namespace frazil
