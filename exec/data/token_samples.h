#pragma once
// Makes sequences of tokens that can be learned, for models that read tokens. Equal arguments give
// equal bits on every machine, and the training part is the same whatever the size of the test part
// is.

#include <cstdint>

#include "exec/data/dataset.h"
#include "exec/tensors/sample_form.h"

namespace frazil {

// For labels that are the next token: each token has one successor, drawn by the seed, and is
// followed by that in 7 of 8 cases, else by any token. For labels that are a class: tokens are
// drawn one by one; each has a score for each class, drawn by the seed, and the class is that with
// the largest sum over the sequence. With a mask, sequences have between half and all of the
// tokens; what stands behind the end is token 0 of segment 0. Segments split a sequence into parts
// as equal as can be. Requires: a form of tokens.
Dataset make_token_samples(int train, int test, const SampleForm& form, std::uint64_t seed);

}  // namespace frazil
