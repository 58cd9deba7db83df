#pragma once
// Finds the layer of the model that each forward operation of a trace belongs to.
// - By ranges, if the user marked layers: an operation belongs to the innermost range around it;
//   operations outside all ranges belong to no layer.
// - By operations, else: a layer begins at each operation that has parameters (linear, convolution,
//   normalisation, embedding, recurrent cell) and at a loss, except inside the same call of a
//   module; the operations after it belong to it, up to the last one of the step that has a
//   backward. A layer is named after its module ("Linear_0"), else after the operation and how many
//   such operations came before ("conv2d_3"). Residual branches are not seen.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/kineto/kineto_backward.h"
#include "traces/kineto/kineto_join.h"

namespace frazil {

enum class LayerSource : std::uint8_t { kRanges, kOperations };

struct TraceLayers {
  LayerSource source = LayerSource::kRanges;
  std::vector<std::string> names;  // in the order in which they first run
  // The layer of each work; -1: none. A backward has the layer of its forward.
  std::vector<std::int32_t> of_work;
  std::vector<std::int32_t> of_range;  // layer of each range; -1: none
  // How often each layer's range occurs in a step, which is the number of micro-batches; none if
  // layers or steps differ in that, or there are no ranges.
  std::optional<int> passes = std::nullopt;
};

// Finds the layers of a trace whose steps hold `micro_batches` equal passes each. Throws InputError
// if there is neither a range that names a layer nor an operation with parameters, if passes
// without ranges differ, for more than kMostImportedLayers, and for many layers and steps of which
// most hold few of the layers.
TraceLayers find_layers(const JoinedTrace& trace, const BackwardMatch& backward, int micro_batches);

// Says whether a layer begins at an operation of this name ("aten::linear").
bool starts_layer(std::string_view operation);

}  // namespace frazil
