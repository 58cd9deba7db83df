#pragma once
// These functions measure on a run the signals that freeze policies read
// (planner/freezing/signals.h). Each number is made in one place, in double, over parameters and
// layers in their order, from bits that are the same in every plan; so the numbers have the same
// bits in every plan too.

#include <map>
#include <string>
#include <vector>

#include "exec/state/layer_state.h"
#include "planner/freezing/signals.h"

namespace frazil {

class Run;
struct Samples;

// Returns the gradient norm of each block: the root of the sum of its layers' `squares`, which are
// by layer.
std::vector<double> gradient_norms(const ModelSpec& model, const std::vector<double>& squares);
// Returns the L1 norm of each block's sum of gradients (LayerState::gradient_sums), 0 for a block
// that has none.
std::vector<double> interval_gradients(const Run& run);

// Sketches are, block by block, make_sketch() of what the block's last layer puts out.
using Sketches = std::vector<std::vector<double>>;
Sketches sketch_blocks(const Run& run, const Samples& probe);
// Returns plasticity() of each block.
std::vector<double> compare_sketches(const Sketches& now, const Sketches& then);

// Returns the signals by name, as a freeze trace keeps them: "gradient_norms.3", "learning_rate".
// Numbers that are not finite are left out.
std::map<std::string, double> list_signals(const FreezeSignals& signals);

}  // namespace frazil
