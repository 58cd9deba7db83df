#pragma once
// Reads a model profile from a CSV table of layers that form a chain. The first line names the
// columns, in any order, each with its unit; every further line is the chain's next layer:
//   name,forward_ms,backward_ms,activation_bytes,parameter_bytes
//   conv1,0.539,0.188,44302336,93184
// The columns are name; forward_<t>; backward_<t>, or backward_input_<t> and backward_weight_<t>;
// activation_<b> (the layer's output). Optional columns are parameter_<b>, optimizer_state_<b>,
// stash_<b> (saved activations; default: the layer's input), update_<t>, block (a name; default: a
// block for each layer). <t> is s, ms, us or ns; <b> is bytes, kB, MB, GB, KiB, MiB or GiB.
// Times and sizes are exact and those of one micro-batch: what is no whole number of ns or bytes is
// refused, except decimals of KiB, MiB and GiB (at most six), which are rounded up. A cell in
// double quotes may hold commas and doubled quotes. The last layer has the loss. A whole backward
// is split by the rule of profiles/split_backward.h. Bytes per sample are rounded up.

#include <string>
#include <string_view>

#include "profiles/import/imported_profile.h"

namespace frazil {

// Throws InputError with file and line for anything else.
ImportedProfile parse_layer_csv(std::string_view text, const std::string& file,
                                const ImportOptions& options);

}  // namespace frazil
