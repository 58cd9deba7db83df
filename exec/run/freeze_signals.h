#pragma once
// These functions make the signals that freeze policies read (planner/freezing/signals.h) of what
// the devices of a run have measured. Each number is made in one place, in double, over parameters
// and layers in their order, from bits that are the same in every plan; so the numbers have the
// same bits in every plan too.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exec/models/model.h"
#include "planner/freezing/signals.h"

namespace frazil {

// Returns the gradient norm of each block: the root of the sum of its layers' `squares`, which are
// by layer. A block without trainable parameters has kLargestReading: it has no gradient, and is
// not the one that has learnt the most.
std::vector<double> gradient_norms(const ModelSpec& model, const std::vector<double>& squares);
// Sketches are, block by block, make_sketch() of what the block's last layer puts out.
using Sketches = std::vector<std::vector<double>>;
// Returns make_sketch() of the floating-point outputs of a layer for so many samples.
std::vector<double> sketch_outputs(const Tensors& outputs, std::int64_t samples);
// Returns plasticity() of each block.
std::vector<double> compare_sketches(const Sketches& now, const Sketches& then);

// Returns the signals by name, as a freeze trace keeps them: "gradient_norms.3", "learning_rate".
// Numbers that are not finite are left out.
std::map<std::string, double> list_signals(const FreezeSignals& signals);

}  // namespace frazil
