#include "profiles/join_loss.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

bool have_equal_sizes(const Layer& a, const Layer& b) {
  return std::equal(a.costs.begin(), a.costs.end(), b.costs.begin(), b.costs.end(),
                    [](const CostSample& left, const CostSample& right) {
                      return left.micro_batch_size == right.micro_batch_size;
                    });
}

bool reads_last_alone(const ModelProfile& profile) {
  const LayerId loss{profile.layers.size() - 1};
  const LayerId before{profile.layers.size() - 2};
  return std::all_of(profile.edges.begin(), profile.edges.end(),
                     [&](const Edge& edge) { return edge.to != loss || edge.from == before; });
}

void refuse_unless(bool holds, const ModelProfile& profile, const char* expected) {
  if (holds) return;
  throw InputError("command line", 0,
                   fmt::format("--join-loss for \"{}\"", profile.layers.back().name), expected);
}

CostSample add(const CostSample& layer, const CostSample& loss) {
  CostSample sum = layer;
  sum.forward += loss.forward;
  sum.forward_frozen += loss.forward_frozen;
  const Duration backward = loss.backward_input + loss.backward_weight;
  sum.backward_input += backward;
  // A layer whose inputs need no gradient runs no I, but its loss still has a backward.
  sum.backward_weight_alone += backward;
  sum.stash.count += loss.stash.count;
  if (layer.stash_frozen || loss.stash_frozen) {
    sum.stash_frozen = Bytes{layer.kept(false).count + loss.kept(false).count};
  }
  return sum;
}

}  // namespace

void join_loss(ModelProfile& profile) {
  refuse_unless(profile.layers.size() > 1, profile, "a layer before the loss");
  const Layer loss = profile.layers.back();
  Layer& layer = *(profile.layers.end() - 2);
  refuse_unless(loss.parameters.count == 0, profile, "a last layer without parameters");
  refuse_unless(reads_last_alone(profile), profile, "a last layer that reads the one before alone");
  refuse_unless(have_equal_sizes(layer, loss), profile,
                "micro-batch sizes that are those of the layer before");
  std::transform(layer.costs.begin(), layer.costs.end(), loss.costs.begin(), layer.costs.begin(),
                 add);
  layer.update += loss.update;
  layer.has_loss = layer.has_loss || loss.has_loss;
  if (loss.block != layer.block) profile.blocks.pop_back();
  const LayerId last{profile.layers.size() - 1};
  std::erase_if(profile.edges, [&](const Edge& edge) { return edge.to == last; });
  profile.layers.pop_back();
}

}  // namespace frazil
