#pragma once
// How much a block's view of a fixed probe batch has changed: Gram matrices are compared, so two
// numbers per pair of samples are kept and no reference model (after Egeria, Wang et al., EuroSys
// 2023, whose reference is a quantised model; similarity-preserving loss, Tung and Mori 2019).

#include <cstddef>
#include <span>
#include <vector>

namespace frazil {

// G = A A^T with each row divided by its L2 norm (a row of zeros stays), row by row, of the outputs
// A of b samples, `features` each, sample by sample.
std::vector<double> make_sketch(std::span<const double> outputs, std::size_t samples);

// (1 / b^2) ||G_now - G_then||_F^2 of two b x b sketches; 0..4 / b.
double plasticity(std::span<const double> now, std::span<const double> then);

}  // namespace frazil
