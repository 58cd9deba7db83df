#pragma once
// clang-format off
// What decides the bits of a run, by key, in "run.json" beside its checkpoints: so that a run which
// is not the one of the folder can be told in what it differs. These keys are a help and no guard;
// the guard is the hash in journal and checkpoints.
//   {"format": "frazil.run_keys", "version": 1, "run_hash": "<16 hex digits>",
//    "keys": {"optimizer.learning_rate": "0.002", "steps": "900", ...}}
// clang-format on

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "exec/checkpoint/checkpoint_file.h"
#include "exec/disk/file_system.h"

namespace frazil {

// Returns XXH64 over keys and values.
std::uint64_t hash_keys(const std::map<std::string, std::string>& keys);

// Compares the run with the keys in the folder. Returns true if they agree, and throws InputError
// naming each key that differs, with both values, if they do not. Returns false if there is nothing
// to compare: no keys of the run, or no "run.json" that can be read and whose hash holds.
bool check_keys(const FileSystem& files, const std::filesystem::path& folder,
                const RunIdentity& run);
// Writes "run.json" by rename; it is durable when this returns. Throws InputError.
void write_keys(const FileSystem& files, const std::filesystem::path& folder,
                const RunIdentity& run);

}  // namespace frazil
