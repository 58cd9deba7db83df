#pragma once
// What freeze policies read (planner/freezing/signals.h), measured on a run. Each number is made in
// one place, in double, over parameters and layers in their order, from bits that every plan gives
// alike: so all plans give the same bits of it.

#include <map>
#include <string>
#include <vector>

#include "exec/state/layer_state.h"
#include "planner/freezing/signals.h"

namespace frazil {

class Run;
struct Samples;

// Roots of the sums over each block's layers. `squares`: by layer.
std::vector<double> gradient_norms(const ModelSpec& model, const std::vector<double>& squares);
// L1 norms of the blocks' sums of gradients; 0 of one that has none.
std::vector<double> interval_gradients(const Run& run);

// make_sketch() of each block's last layer, block by block.
using Sketches = std::vector<std::vector<double>>;
Sketches sketch_blocks(const Run& run, const Samples& probe);
// plasticity() of each block.
std::vector<double> compare_sketches(const Sketches& now, const Sketches& then);

// By name, as a freeze trace keeps them: "gradient_norms.3", "learning_rate". Numbers that are not
// finite are left out.
std::map<std::string, double> list_signals(const FreezeSignals& signals);

}  // namespace frazil
