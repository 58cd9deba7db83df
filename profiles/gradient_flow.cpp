#include "profiles/gradient_flow.h"

namespace frazil {
namespace {

// Edges are sorted by their first layer and run forward. One pass against their order therefore
// sees each layer after every layer that reads from it, and a pass along their order sees each
// layer after every layer that it reads from.
std::vector<bool> find_layers_that_reach_a_loss(const ModelProfile& profile) {
  std::vector<bool> reaches;
  for (const Layer& layer : profile.layers) reaches.push_back(layer.has_loss);
  for (auto edge = profile.edges.rbegin(); edge != profile.edges.rend(); ++edge) {
    if (edge->kind == EdgeKind::kGradient && reaches.at(edge->to.index())) {
      reaches.at(edge->from.index()) = true;
    }
  }
  return reaches;
}

// Returns for each layer whether it trains or has an ancestor along gradient edges that does.
std::vector<bool> find_layers_that_need_gradients(const ModelProfile& profile,
                                                  std::vector<bool> trains) {
  for (const Edge& edge : profile.edges) {
    if (edge.kind == EdgeKind::kGradient && trains.at(edge.from.index())) {
      trains.at(edge.to.index()) = true;
    }
  }
  return trains;
}

}  // namespace

GradientFlow find_gradient_flow(const ModelProfile& profile, const std::vector<bool>& trains) {
  const std::vector<bool> reaches = find_layers_that_reach_a_loss(profile);
  const std::vector<bool> needs = find_layers_that_need_gradients(profile, trains);
  GradientFlow flow;
  for (std::size_t layer = 0; layer < profile.layers.size(); ++layer) {
    flow.layers.push_back({.input = false, .weight = trains.at(layer) && reaches[layer]});
  }
  for (const Edge& edge : profile.edges) {
    const bool carries =
        edge.kind == EdgeKind::kGradient && reaches[edge.to.index()] && needs[edge.from.index()];
    flow.edge_carries.push_back(carries);
    if (carries) flow.layers[edge.to.index()].input = true;
  }
  return flow;
}

GradientFlow find_unfrozen_flow(const ModelProfile& profile) {
  std::vector<bool> trains;
  for (const Layer& layer : profile.layers) trains.push_back(layer.trainable().count > 0);
  for (const TiedParameter& tied : profile.tied) {
    if (!tied.trainable) continue;
    for (const LayerId layer : tied.layers) trains.at(layer.index()) = true;
  }
  return find_gradient_flow(profile, trains);
}

}  // namespace frazil
