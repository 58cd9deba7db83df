#include "traces/kineto/tied_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiles/quantity_text.h"

namespace frazil {

std::vector<std::optional<std::size_t>> find_tied_layers(const std::vector<WeightFacts>& layers) {
  std::vector<std::optional<std::size_t>> tied(layers.size());
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const std::int64_t bytes = layers[layer].unaccumulated;
    if (bytes <= 0) continue;
    int found = 0;
    for (std::size_t other = 0; other < layers.size(); ++other) {
      if (other == layer || layers[other].largest != bytes) continue;
      tied[layer] = other;
      ++found;
    }
    if (found != 1) tied[layer].reset();
  }
  return tied;
}

std::vector<std::string> add_tied_weights(const std::vector<WeightFacts>& layers,
                                          ModelProfile& profile) {
  std::vector<std::string> sentences;
  const std::vector<std::optional<std::size_t>> tied = find_tied_layers(layers);
  for (std::size_t owner = 0; owner < layers.size(); ++owner) {
    TiedParameter parameter{"weight of " + profile.layers[owner].name, {layers[owner].largest}, {}};
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const bool is_copy = tied[layer] == owner;
      if (is_copy || layer == owner) parameter.layers.emplace_back(layer);
      if (!is_copy) continue;
      profile.layers[layer].parameters += parameter.bytes;
      sentences.push_back(fmt::format("the weight of {} ({}) is tied with {}",
                                      profile.layers[layer].name, to_text(parameter.bytes),
                                      profile.layers[owner].name));
    }
    if (parameter.layers.size() > 1) profile.tied.push_back(std::move(parameter));
  }
  return sentences;
}

}  // namespace frazil
