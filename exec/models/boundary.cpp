#include "exec/models/boundary.h"

#include <set>

namespace frazil {

std::vector<LayerOutput> find_boundary(const ModelSpec& model, int depth) {
  std::set<LayerOutput> crossing;
  for (const ModelEdge& edge : model.edges) {
    if (edge.from.value >= depth || edge.to.value < depth) continue;
    for (const std::size_t output : edge.outputs) crossing.insert({edge.from, output});
  }
  return {crossing.begin(), crossing.end()};
}

std::vector<LayerOutput> find_boundary_tensors(const ModelSpec& model, int depth) {
  std::set<LayerOutput> tensors;
  for (LayerOutput crossing : find_boundary(model, depth)) {
    const std::vector<std::size_t>& same_as = model.layers[crossing.layer.index()].same_as;
    if (!same_as.empty()) crossing.output = same_as.at(crossing.output);
    tensors.insert(crossing);
  }
  return {tensors.begin(), tensors.end()};
}

}  // namespace frazil
