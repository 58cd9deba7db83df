#pragma once
// Blocks none of whose parameters are trainable, as those of a pre-trained model below its
// adapters. They are not frozen: dropout and statistics are in force in them as in any block that
// trains, unless a run asks for evaluation mode.

#include <string>
#include <vector>

#include "exec/models/model.h"

namespace frazil {

// Returns the blocks without a trainable parameter, ascending.
std::vector<BlockId> find_untrainable_blocks(const ModelSpec& model);

// Returns the model with these blocks in evaluation mode, whatever a call says. What they put out
// does not vary in training then, and can be cached.
ModelSpec evaluate_untrainable(ModelSpec model);

// Returns "block 0 (embeddings) has no trainable parameter and runs in evaluation mode", "" where
// there is no such block.
std::string tell_untrainable(const ModelSpec& model);

}  // namespace frazil
