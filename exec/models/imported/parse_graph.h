#pragma once
// Reads the JSON text of a model file.

#include <string>
#include <string_view>

#include "exec/models/imported/imported_graph.h"

namespace frazil {

// Throws InputError naming `file`, the place in the JSON and, within a node, its operation, module
// and source line: for unknown keys, sizes that are no polynomial in n, names that nothing before
// has defined, tensors that the file (`tensors`) does not hold or holds in other shapes, and edges
// that do not fit the inputs of layers.
ImportedGraph parse_graph(std::string_view text, const TensorHeader& tensors,
                          const std::string& file);

}  // namespace frazil
