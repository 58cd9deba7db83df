#pragma once
// The model profile file: "format": "frazil.model", "version": 1; integers, units in key names
// (forward_ns, stash_bytes). A sample gives backward_input_ns and backward_weight_ns, or
// backward_ns alone; then the rule of profiles/split_backward.h splits it and the profile carries
// the flag. These keys may be left out: has_loss (false), optimizer_state_bytes, update_ns,
// input_bytes_per_sample (0), forward_frozen_ns (forward_ns), backward_weight_alone_ns
// (backward_weight_ns), stash_frozen_bytes (stash_bytes), trainable_parameter_bytes
// (parameter_bytes), varies_in_training (false), kind ("gradient"), tied, its trainable (true),
// provenance (empty), backward_was_split_by_rule (false unless a sample says backward_ns),
// precision ("fp32", else "bf16"). Edges may come in any order. The readers throw InputError with
// file, line and path.

#include <filesystem>
#include <string>
#include <string_view>

#include "profiles/model_profile.h"

namespace frazil {

class JsonCursor;

ModelProfile parse_model_profile(std::string_view text, const std::string& file);
std::string to_json(const ModelProfile& profile);  // equal profiles give equal bytes; round trips

ModelProfile read_model_profile(const std::filesystem::path& path);
void write_model_profile(const ModelProfile& profile, const std::filesystem::path& path);

// Read and write the member "provenance" of any file: an object of texts. The text form has one key
// per line and suits a member of the outermost object.
Provenance parse_provenance(const JsonCursor& object);
std::string to_json(const Provenance& provenance);

}  // namespace frazil
