#pragma once
// clang-format off
// The settings that decide the bits of a run, by key. The file "run.json" beside its checkpoints
// keeps them, so that a refusal to go on with another run can say which settings differ. The keys
// guard nothing: what refuses another run is run_hash, which journal and checkpoints hold too.
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

// Returns XXH64 over keys and values; identify_run() makes RunIdentity::run_hash by it. Throws
// InputError for text that is not UTF-8.
std::uint64_t hash_keys(const std::map<std::string, std::string>& keys);

// Compares the run's keys with those in the folder's "run.json". Returns true if they are equal,
// and throws InputError naming each key that differs, with both values, if they are not. Returns
// false if there is nothing to compare: the run has no keys, or "run.json" is missing or cannot be
// read, or its keys do not have the hash "run_hash" that stands beside them. Throws InputError if
// the folder cannot be listed.
bool check_keys(const FileSystem& files, const std::filesystem::path& folder,
                const RunIdentity& run);
// Writes "run.json" by rename, in place of an older one; it is durable when this returns. Throws
// InputError. Requires: a folder that exists; run.run_hash is hash_keys(run.keys).
void write_keys(const FileSystem& files, const std::filesystem::path& folder,
                const RunIdentity& run);

}  // namespace frazil
