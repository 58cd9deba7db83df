#include "planner/partition/boundaries.h"

#include <algorithm>
#include <numeric>

#include "planner/partition/part_graph.h"

namespace frazil {
namespace {

// Layers and who reads whom. A free layer has neither compute nor parameters, so only the bytes
// that cross tell where it should lie. A free layer that nobody reads and that has no loss is left
// aside.
class Readers {
 public:
  Readers(const ModelProfile& profile, int micro_batch_size)
      : nodes_(profile.layers.size()), before_(nodes_.size(), std::vector<bool>(nodes_.size())) {
    for (std::size_t l = 0; l < nodes_.size(); ++l) {
      const Layer& layer = profile.layers[l];
      const CostSample cost = cost_at(layer, micro_batch_size).cost;
      nodes_[l].compute = (cost.forward + cost.backward_input + cost.backward_weight).count();
      nodes_[l].parameters = layer.trainable().count;
      nodes_[l].has_loss = layer.has_loss;
    }
    std::int64_t to_reader = 0;
    for (const Edge& edge : profile.edges) {  // sorted by (from, to)
      Node& from = nodes_[edge.from.index()];
      if (from.readers.empty() || from.readers.back() != edge.to.index()) {
        from.readers.push_back(edge.to.index());
        nodes_[edge.to.index()].inputs.push_back(edge.from.index());
        to_reader = 0;
      }
      to_reader += edge.bytes(micro_batch_size).count;
      from.activation = std::max(from.activation, to_reader);
    }
    for (std::size_t l = 0; l < nodes_.size(); ++l) {
      for (const std::size_t input : nodes_[l].inputs) add_before(l, input);
      if (is_free(l) && nodes_[l].inputs.empty()) nodes_[l].activation = 0;
    }
    for (std::size_t l = nodes_.size(); l-- > 0;) {
      if (!is_aside(l)) continue;
      for (const std::size_t input : nodes_[l].inputs) std::erase(nodes_[input].readers, l);
    }
  }

  std::size_t size() const { return nodes_.size(); }
  const std::vector<std::size_t>& inputs(std::size_t layer) const { return nodes_[layer].inputs; }
  const std::vector<std::size_t>& readers(std::size_t layer) const { return nodes_[layer].readers; }
  std::int64_t activation(std::size_t layer) const { return nodes_[layer].activation; }
  bool is_before(std::size_t first, std::size_t second) const { return before_[second][first]; }
  bool is_free(std::size_t layer) const {
    return nodes_[layer].compute == 0 && nodes_[layer].parameters == 0;
  }
  bool is_aside(std::size_t layer) const {
    return is_free(layer) && nodes_[layer].readers.empty() && !nodes_[layer].has_loss;
  }

  Boundary sum(std::vector<bool> within) const {
    Boundary boundary;
    std::vector<bool> counts(size());
    for (std::size_t l = 0; l < size(); ++l) {
      if (!within[l] || is_aside(l)) continue;
      boundary.compute += nodes_[l].compute;
      boundary.parameters += nodes_[l].parameters;
      const std::vector<std::size_t>& of = readers(l);
      if (std::any_of(of.begin(), of.end(), [&](std::size_t r) { return within[r]; })) continue;
      counts[l] = true;
      for (std::size_t p = 0; p < l; ++p) {
        if (is_before(p, l) && is_read_beyond(p, l)) counts[p] = true;
      }
    }
    for (std::size_t l = 0; l < size(); ++l) {
      if (counts[l]) boundary.crossing += activation(l);
    }
    boundary.layers = std::move(within);
    return boundary;
  }

 private:
  struct Node {
    std::vector<std::size_t> inputs, readers;  // ascending
    std::int64_t compute = 0;
    std::int64_t parameters = 0;
    std::int64_t activation = 0;
    bool has_loss = false;
  };

  void add_before(std::size_t layer, std::size_t input) {
    before_[layer][input] = true;
    for (std::size_t l = 0; l < input; ++l) {
      if (before_[input][l]) before_[layer][l] = true;
    }
  }

  bool is_read_beyond(std::size_t layer, std::size_t last) const {
    const std::vector<std::size_t>& of = readers(layer);
    return std::any_of(of.begin(), of.end(), [&](std::size_t reader) {
      return reader != last && !is_before(reader, last);
    });
  }

  std::vector<Node> nodes_;
  std::vector<std::vector<bool>> before_;
};

enum class LayerPlace { kOwn, kWithInput, kWithReader, kAside };

// Decides where each layer lies. A free layer without input crosses less when it lies with the
// first of its readers. So does a free layer whose input has other readers too: the input counts
// wherever the layer lies, so with its first reader the layer adds nothing. A free layer that alone
// reads its input lies so that the smaller of the two crosses. A layer that lies with a reader
// cannot take another layer along.
std::vector<LayerPlace> find_places(const Readers& layers) {
  std::vector<LayerPlace> places(layers.size(), LayerPlace::kOwn);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (layers.is_aside(l)) places[l] = LayerPlace::kAside;
    if (!layers.is_free(l) || layers.readers(l).empty() || layers.inputs(l).size() > 1) continue;
    if (layers.inputs(l).empty()) {
      places[l] = LayerPlace::kWithReader;
      continue;
    }
    const std::size_t input = layers.inputs(l).front();
    const bool is_larger = layers.activation(l) > layers.activation(input);
    if (layers.readers(input).size() > 1 || is_larger) {
      places[l] = LayerPlace::kWithReader;
    } else if (places[input] != LayerPlace::kWithReader) {
      places[l] = LayerPlace::kWithInput;
    }
  }
  return places;
}

// Makes a part of the layers that lie together; parts are in the order of their first layers.
PartGraph to_parts(const Readers& layers, const std::vector<LayerPlace>& places) {
  PartGraph graph;
  std::vector<std::size_t> part_of(layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (places[l] == LayerPlace::kWithReader || places[l] == LayerPlace::kAside) continue;
    if (places[l] == LayerPlace::kOwn) {
      part_of[l] = graph.parts.size();
      graph.parts.emplace_back();
    } else {
      part_of[l] = part_of[layers.inputs(l).front()];
    }
    graph.parts[part_of[l]].nodes.push_back(l);
  }
  for (std::size_t p = 0; p < graph.parts.size(); ++p) {
    std::vector<std::size_t>& before = graph.parts[p].before;
    for (std::size_t l = 0; l < graph.parts[p].nodes.front(); ++l) {
      if (places[l] == LayerPlace::kWithReader || places[l] == LayerPlace::kAside) continue;
      if (layers.is_before(l, graph.parts[p].nodes.front())) before.push_back(part_of[l]);
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (const std::size_t earlier : before) graph.parts[earlier].after.push_back(p);
  }
  return graph;
}

std::vector<bool> find_layers(const Readers& layers, const PartGraph& graph,
                              const IdealLattice& lattice, std::int32_t ideal) {
  std::vector<bool> within(layers.size());
  for (std::size_t p = 0; p < graph.parts.size(); ++p) {
    if (!lattice.holds(ideal, p)) continue;
    for (const std::size_t layer : graph.parts[p].nodes) within[layer] = true;
  }
  for (std::size_t l = layers.size(); l-- > 0;) {
    if (!within[l]) continue;
    for (const std::size_t input : layers.inputs(l)) within[input] = true;
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (!layers.is_aside(l) || ideal == 0) continue;
    const std::vector<std::size_t>& inputs = layers.inputs(l);
    within[l] = std::all_of(inputs.begin(), inputs.end(), [&](std::size_t i) { return within[i]; });
  }
  return within;
}

}  // namespace

std::optional<Boundaries> list_boundaries(const ModelProfile& profile, int micro_batch_size,
                                          std::size_t most, bool near_order) {
  const Readers layers(profile, micro_batch_size);
  const PartGraph graph = to_parts(layers, find_places(layers));
  std::vector<std::size_t> order(graph.parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::optional<IdealLattice> lattice =
      list_ideals(graph, order, near_order ? 0 : order.size(), most);
  if (!lattice) return std::nullopt;
  Boundaries boundaries{std::move(*lattice), {}};
  for (std::int32_t i = 0; i < boundaries.lattice.size(); ++i) {
    boundaries.list.push_back(layers.sum(find_layers(layers, graph, boundaries.lattice, i)));
  }
  return boundaries;
}

}  // namespace frazil
