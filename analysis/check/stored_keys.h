#pragma once
// Reads the two files beside the checkpoints of a run that say what decides its bits, run.json and
// kernels.json, by their formats alone (docs/formats.md), and changes nothing. It shares no code
// with what writes them.

#include <cstdint>
#include <filesystem>
#include <string>

namespace frazil {

struct StoredKeys {
  std::uint64_t run_hash = 0;  // of the keys that are there
  bool holds = false;          // the file states the same hash
};

// Throws InputError for a file that is not one of a run's keys.
StoredKeys read_stored_keys(const std::filesystem::path& path);

struct StoredKernels {
  std::uint64_t last_hash = 0;  // of the facts of the last kernels, those in force
  std::string words;            // says which these are
  bool holds = false;           // the file states the hash of all that is there
};

// Throws InputError for a file that is not one of a run's kernels.
StoredKernels read_stored_kernels(const std::filesystem::path& path);

}  // namespace frazil
