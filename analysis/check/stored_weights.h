#pragma once
// Reads weights.safetensors of a run's folder (docs/formats.md), whose tensors lie otherwise than
// those of a checkpoint: a parameter that several layers use lies there once, and behind the
// parameters what training does not change. Of a distillation it holds the student alone.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace frazil {

struct StoredWeights {
  std::string format;
  std::string steps;
  std::string part;             // of the run's parameters that the file holds; empty: all of them
  bool has_known_order = true;  // else there is no hash: a checkpoint tells where statistics go
  // The hash of the bytes of all parameters in the file, in the order of a checkpoint.
  std::uint64_t hash = 0;
  bool has_all_names = true;  // and no others but of what is said to be unchanged
};

// `parameters`: the names that a checkpoint has for them, in its order; if empty, those of the file
// are taken. Throws InputError in one sentence for a file that is no whole safetensors file.
StoredWeights read_stored_weights(const std::filesystem::path& path,
                                  const std::vector<std::string>& parameters);

}  // namespace frazil
