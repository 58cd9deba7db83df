#pragma once
// Plasticity measures how much a block's outputs on a fixed probe batch have changed. It compares
// two Gram matrices of the samples, so a run keeps b x b numbers per block and no reference model
// (after Egeria, Wang et al., EuroSys 2023, whose reference is a quantised model; the measure is
// the similarity-preserving loss of Tung and Mori 2019).

#include <cstddef>
#include <span>
#include <vector>

namespace frazil {

// Returns G = A A^T, in row-major order, with each row divided by its L2 norm (a row of zeros
// stays). A holds one row of features per sample. Requires: b = samples >= 1, and equally many
// features for every sample.
std::vector<double> make_sketch(std::span<const double> outputs, std::size_t samples);

// Returns (1 / b^2) ||G_now - G_then||_F^2 of two b x b sketches, a value from 0 to 4 / b.
double plasticity(std::span<const double> now, std::span<const double> then);

}  // namespace frazil
