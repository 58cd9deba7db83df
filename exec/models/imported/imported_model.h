#pragma once
// Makes the model of a model file, to be trained as any other.

#include <memory>

#include "exec/models/imported/model_file.h"
#include "exec/models/imported/resolved_node.h"
#include "exec/models/model.h"

namespace frazil {

// The model keeps the file's memory. Throws InputError naming the file and the node where an
// operation cannot be performed (exec/models/imported/resolved_node.h).
ModelSpec make_imported(std::shared_ptr<const ImportedModel> model,
                        Randomness randomness = Randomness::kKeyed);

}  // namespace frazil
