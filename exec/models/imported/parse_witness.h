#pragma once
// Reads the witness of a model file: what its exporter saw the model compute.

#include <cstddef>

#include "exec/models/imported/imported_graph.h"
#include "profiles/json.h"

namespace frazil {

// Throws InputError for a name that no tensor of the file has.
const TensorEntry& find_tensor(const JsonCursor& name, const TensorHeader& tensors);

// Throws InputError for a case that has not one tensor for each of the model's `inputs`.
Witness parse_witness(const JsonCursor& at, std::size_t inputs, const TensorHeader& tensors);

}  // namespace frazil
