#pragma once
// Which layer of the model each forward operation of a trace belongs to.
//
// - By ranges, where the user marked layers: an operation belongs to the innermost range around it;
//   operations outside belong to none.
// - Else by operations: a layer begins at each operation that has parameters (linear, convolution,
//   normalisation, embedding, recurrent cell) and at a loss, except inside the same call of a
//   module; operations after it belong to it, up to the last one of the step that has a backward.
//   It is named after its module ("Linear_0"), else after the operation and how many such came
//   before ("conv2d_3"). Where residual branches run is not seen.

#include <cstdint>
#include <string>
#include <vector>

#include "traces/kineto/kineto_backward.h"
#include "traces/kineto/kineto_join.h"

namespace frazil {

enum class LayerSource : std::uint8_t { kRanges, kOperations };

struct TraceLayers {
  LayerSource source = LayerSource::kRanges;
  std::vector<std::string> names;      // in the order in which they first run
  std::vector<std::int32_t> of_work;   // by work; -1: none; of a backward that of its forward
  std::vector<std::int32_t> of_range;  // by range; -1 for all that count no layer's time
};

// Each step holds `micro_batches` equal passes. Throws InputError where there is neither a range
// nor an operation with parameters, and where passes without ranges differ.
TraceLayers find_layers(const JoinedTrace& trace, const BackwardMatch& backward, int micro_batches);

// Does a layer begin at an operation of this name ("aten::linear")?
bool starts_layer(std::string_view operation);

}  // namespace frazil
