#pragma once
// Reads the nodes of a model file's layers and loss.

#include <set>
#include <string>
#include <vector>

#include "exec/models/imported/imported_graph.h"
#include "profiles/json.h"

namespace frazil {

// Throws InputError for a size that is no polynomial in n, say one that depends on data.
Polynomial parse_size(const JsonCursor& at);
// Takes the members "dtype" and "shape".
ImportedType parse_type(JsonFields& fields);

// Reads the nodes of a layer. `defined`: the names that a node may read; those of the results are
// added. Throws InputError as parse_graph does.
std::vector<ImportedNode> parse_nodes(const JsonCursor& list, std::set<std::string>& defined);

}  // namespace frazil
