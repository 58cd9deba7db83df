#pragma once
// What holds of a whole graph, beyond each part alone.

#include "exec/models/imported/imported_graph.h"
#include "profiles/json.h"

namespace frazil {

// Throws InputError, with the place in the JSON that `fields` are read from, unless
// - blocks have names, each its own; each has layers, and layers come block after block;
// - each parameter and each buffer is in one layer, a tied parameter in a layer of its own;
// - what the loss counts is made of labels and constants alone;
// - the witness has cases of different numbers of samples, each with outputs.
void check_graph(const ImportedGraph& graph, JsonFields& fields);

}  // namespace frazil
