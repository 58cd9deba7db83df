#pragma once
// What decides the bits of a run, by key, in "run.json" beside its checkpoints: so that a run which
// is not the one of the folder can be told in what it differs. A help and no guard: that is the
// hash in journal and checkpoints.
//   {"format": "frazil.run_keys", "version": 1, "run_hash": "<16 hex digits>",
//    "keys": {"optimizer.learning_rate": "0.002", "steps": "900", ...}}

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "exec/checkpoint/checkpoint_file.h"
#include "exec/disk/file_system.h"

namespace frazil {

// XXH64 over keys and values.
std::uint64_t hash_keys(const std::map<std::string, std::string>& keys);

// Throws InputError naming each key that differs, with both values, where the folder says that it
// holds another run. What cannot be read, or does not hold, says nothing: false.
bool check_keys(const FileSystem& files, const std::filesystem::path& folder,
                const RunIdentity& run);
// By rename, durable. Throws InputError.
void write_keys(const FileSystem& files, const std::filesystem::path& folder,
                const RunIdentity& run);

}  // namespace frazil
