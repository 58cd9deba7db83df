#include "planner/plan/activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "profiles/error.h"
#include "profiles/gradient_flow.h"

namespace frazil {
namespace {

std::vector<bool> find_active_layers(const ModelProfile& profile, const FreezeMask& mask) {
  std::vector<bool> active;
  for (const Layer& layer : profile.layers) {
    active.push_back(layer.trainable().count > 0 && mask.is_active(layer.block));
  }
  for (const TiedParameter& tied : profile.tied) {
    if (!tied.trainable) continue;
    const bool any_block_active = std::any_of(
        tied.layers.begin(), tied.layers.end(),
        [&](LayerId layer) { return mask.is_active(profile.layers.at(layer.index()).block); });
    if (!any_block_active) continue;
    for (const LayerId layer : tied.layers) active.at(layer.index()) = true;
  }
  return active;
}

// Adds the layers that others of these read. Edges are sorted by their first layer and run forward:
// against their order, each layer comes after every layer that reads from it.
std::vector<bool> add_what_they_read(const ModelProfile& profile, std::vector<bool> layers) {
  for (auto edge = profile.edges.rbegin(); edge != profile.edges.rend(); ++edge) {
    if (layers[edge->to.index()]) layers[edge->from.index()] = true;
  }
  return layers;
}

std::vector<bool> find_needed_unfrozen(const ModelProfile& profile) {
  const GradientFlow flow = find_unfrozen_flow(profile);
  std::vector<bool> works;
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    works.push_back(flow.layers[l].any() || profile.layers[l].varies_in_training);
  }
  return add_what_they_read(profile, std::move(works));
}

void find_idle_layers(const ModelProfile& profile, Activity& activity) {
  const std::vector<bool> unfrozen = find_needed_unfrozen(profile);
  std::vector<bool> works;
  bool any_backward = false;
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    const bool backward = activity.backward(LayerId{l});
    const bool varies = activity.layers[l].trains && profile.layers[l].varies_in_training;
    any_backward = any_backward || backward;
    works.push_back(backward || varies || !unfrozen[l]);
  }
  if (!any_backward) return;
  const std::vector<bool> needed = add_what_they_read(profile, std::move(works));
  for (std::size_t l = 0; l < needed.size(); ++l) activity.layers[l].idle = !needed[l];
}

// True if a layer from `depth` on reads an idle one before it.
bool reads_idle(const ModelProfile& profile, const Activity& activity, int depth) {
  return std::any_of(profile.edges.begin(), profile.edges.end(), [&](const Edge& edge) {
    return edge.from.value < depth && edge.to.value >= depth && activity.is_idle(edge.from);
  });
}

// Throws unless the first stages hold the whole prefix: only they read samples, and so the features
// that are cached of these samples.
void refuse_prefix_of_other_stages(const Plan& plan, int cached) {
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const std::vector<Stage>& stages = plan.pipelines[p].stages;
    for (std::size_t s = 1; s < stages.size(); ++s) {
      if (!any_layer(stages[s], [&](LayerId layer) { return layer.value < cached; })) continue;
      throw InfeasibleError(
          fmt::format("the cached frozen prefix, {}, does not lie in the first stage of "
                      "pipeline {} alone: stage {} holds some of it",
                      cached == 1 ? "layer 0" : fmt::format("layers 0-{}", cached - 1), p, s));
    }
  }
}

}  // namespace

Activity find_activity(const ModelProfile& profile, const FreezeMask& mask) {
  ENSURE(mask.blocks() == static_cast<int>(profile.blocks.size()),
         "the freeze mask has one bit per block of the model");
  const std::vector<bool> active = find_active_layers(profile, mask);
  const GradientFlow flow = find_gradient_flow(profile, active);
  Activity activity;
  activity.edge_carries = flow.edge_carries;
  for (std::size_t layer = 0; layer < profile.layers.size(); ++layer) {
    activity.layers.push_back(
        {.active = active[layer],
         .input_gradient = flow.layers[layer].input,
         .weight_gradient = flow.layers[layer].weight,
         .trains = active[layer] || mask.is_active(profile.layers[layer].block)});
  }
  find_idle_layers(profile, activity);
  return activity;
}

int count_frozen_prefix(const ModelProfile& profile, const Activity& activity) {
  int count = 0;
  for (const Layer& layer : profile.layers) {
    const LayerActivity& own = activity.layers[static_cast<std::size_t>(count)];
    const bool varies = own.trains && layer.varies_in_training;
    const bool works = layer.has_loss || own.active || varies || activity.backward(LayerId{count});
    if (works && !own.idle) break;
    ++count;
  }
  while (count > 0 && reads_idle(profile, activity, count)) --count;
  return count;
}

Activity find_activity(const ModelProfile& profile, const Plan& plan) {
  Activity activity = find_activity(profile, plan.mask);
  if (!plan.cache_frozen_prefix) return activity;
  activity.cached = count_frozen_prefix(profile, activity);
  refuse_prefix_of_other_stages(plan, activity.cached);
  return activity;
}

std::optional<Plan> with_cached_prefix(const Plan& plan, const ModelProfile& profile) {
  Plan cached = plan;
  cached.cache_frozen_prefix = true;
  try {
    if (find_activity(profile, cached).cached == 0) return std::nullopt;
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
  return cached;
}

bool stage_has_backward(const Stage& stage, const Activity& activity) {
  return any_layer(stage, [&](LayerId layer) { return activity.backward(layer); });
}

bool stage_has_update(const Stage& stage, const Activity& activity) {
  return any_layer(
      stage, [&](LayerId layer) { return activity.layers.at(layer.index()).weight_gradient; });
}

}  // namespace frazil
