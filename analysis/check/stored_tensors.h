#pragma once
// Reads a safetensors file of a run, a checkpoint or weights alone, by its format (docs/formats.md)
// and changes nothing. Tensors are hashed as they come, so a file may be larger than memory.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct StoredTensors {
  std::map<std::string, std::string> metadata;
  std::uint64_t begin_hash = 0;              // of all before the data
  std::optional<std::uint64_t> header_hash;  // as the tensor "header_hash" has it
  std::vector<std::uint64_t> hashes;         // of the tensors but that and paddings, in order
  std::uint64_t weights_hash = 0;            // of the bytes of parameters and statistics
  std::vector<std::string> names;  // of these, in their order; query, key, value each by itself
  bool has_clean_padding = true;
};

// Throws InputError in one sentence for a file that is no whole safetensors file.
StoredTensors read_stored_tensors(const std::filesystem::path& path);

// Returns the hash of the bytes of these parameters in this order, in which a name may stand
// several times. Throws InputError as above, and for a name that the file does not have.
std::uint64_t hash_in_order(const std::filesystem::path& path,
                            const std::vector<std::string>& names);

// What a checkpoint says of itself.
struct StoredCheckpoint {
  std::string model_hash;
  std::uint64_t run_hash = 0;
  Step step = 0;
  std::string mask;
  std::uint64_t weights_hash = 0;
  std::vector<std::string> names;  // as in StoredTensors
};

// Throws InputError in one sentence for a checkpoint that is not, to the last bit, as it was
// written.
StoredCheckpoint read_stored_checkpoint(const std::filesystem::path& path);

}  // namespace frazil
