#pragma once
// clang-format off
// The text of a step journal, lines of 64 bytes. The first names the run:
//   "frazil.step_journal v2        <hash of the run> <hash of the line>\n"
// Each other line is "<step, 12 digits> <16 bytes> <16 bytes> <hash of the line>\n"; numbers of 16
// bytes are hex digits, words are filled up with spaces:
//   <bits of the loss> <hash of the mask>      of this step
//   weights            <hash of the weights>   after so many steps (hash_weights in checkpoint_file.h)
//   kernels            <hash of the kernels>   in use from this step on (run_kernels.h)
//   other-kernels      <hash of the kernels>   likewise; bits differ from there on, so lines before
//                                              of this and later steps, and of weights behind it,
//                                              do not count any more
//   lost               <number of steps>       from this one on, whose lines were damaged
// The hash of a line is XXH64 of what stands before it in its line, seeded by the hash of the line
// before: a line holds only after the lines it was written after.
//
// Version 1, which is read and no longer written, has "v1" in its first line, and lines of steps
// alone.
// clang-format on

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "profiles/units.h"

namespace frazil {

enum class JournalKind { kStep, kWeights, kKernels, kOtherKernels, kLost };

struct JournalLine {
  JournalKind kind = JournalKind::kStep;
  Step step = 0;
  std::uint64_t loss_bits = 0;  // of a step alone
  std::uint64_t value = 0;      // the hash, or the number of steps lost
  friend bool operator==(const JournalLine&, const JournalLine&) = default;
};

inline constexpr std::size_t kJournalLineBytes = 64;
inline constexpr int kJournalVersion = 2;  // which is written
inline constexpr Step kMostJournalSteps = 999'999'999'999;

struct JournalHeader {
  int version = kJournalVersion;
  std::uint64_t run_hash = 0;
};

std::string journal_header(std::uint64_t run_hash, int version = kJournalVersion);
// Requires: a step that is not above kMostJournalSteps. `seed` is the hash of the line before.
std::string journal_line(const JournalLine& line, std::uint64_t seed);
std::uint64_t hash_in_line(std::string_view line);  // of a line that holds

// The functions below take texts of kJournalLineBytes.

// Returns what a first line says, of whatever version; none if it does not hold.
std::optional<JournalHeader> parse_header(std::string_view line);
// Returns what another line says, whether its hash holds or not.
std::optional<JournalLine> parse_journal_line(std::string_view line);
// Returns the hash that a line has, and the one that it should have.
std::optional<std::uint64_t> stated_hash(std::string_view line);
std::uint64_t computed_hash(std::string_view line, std::uint64_t seed);
// Returns the hash of a line that holds after a line of the hash `seed`.
std::optional<std::uint64_t> sealed_hash(std::string_view line, std::uint64_t seed);

}  // namespace frazil
