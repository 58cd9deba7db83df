#include "planner/lowering/stage_work.h"

#include <algorithm>
#include <set>

#include "planner/plan/plan_topology.h"
#include "planner/plan/stage_slices.h"
#include "profiles/error.h"

namespace frazil {
namespace {

void add_backward_parts(LayerId layer, ActionKind kind, const Activity& activity,
                        std::vector<LayerWork>& parts) {
  const LayerActivity& active = activity.layers.at(layer.index());
  if (active.input_gradient && kind != ActionKind::kBackwardWeight) {
    parts.push_back({layer, LayerPart::kBackwardInput});
  }
  if (active.weight_gradient && kind != ActionKind::kBackwardInput) {
    parts.push_back({layer, active.input_gradient ? LayerPart::kBackwardWeight
                                                  : LayerPart::kBackwardWeightAlone});
  }
}

std::vector<LayerWork> find_backward_parts(const Stage& stage, ActionKind kind,
                                           const Activity& activity) {
  std::vector<LayerWork> parts;
  for (auto range = stage.layers.rbegin(); range != stage.layers.rend(); ++range) {
    for (LayerId layer = range->last; layer >= range->first; --layer.value) {
      add_backward_parts(layer, kind, activity, parts);
    }
  }
  return parts;
}

// Returns the layers of `stage` that are not in `held` yet, and adds them to `held`.
std::vector<LayerRange> take_new_layers(const Stage& stage, std::set<LayerId>& held) {
  std::vector<LayerRange> taken;
  for_each_layer(stage, [&](LayerId layer) {
    if (held.insert(layer).second) taken.push_back({layer, layer});
  });
  return taken;
}

}  // namespace

std::vector<StageBoundary> find_stage_boundaries(const Pipeline& pipeline,
                                                 const ModelProfile& profile,
                                                 const Activity& activity) {
  std::vector<StageBoundary> boundaries;
  for (const StageCrossing& crossing : find_topology(pipeline, profile, activity).crossings) {
    StageBoundary& boundary = boundaries.emplace_back();
    boundary.from = crossing.from;
    boundary.to = crossing.to;
    boundary.carries = !crossing.carrying.empty();
    for (const std::size_t e : crossing.edges) {
      const Edge& edge = profile.edges[e];
      boundary.activation_per_sample += edge.bytes(1);
      if (!activity.backward(edge.to)) boundary.buffer_per_sample += edge.bytes(1);
    }
    for (const std::size_t e : crossing.carrying) {
      boundary.gradient_per_sample += profile.edges[e].bytes(1);
    }
  }
  return boundaries;
}

std::vector<LayerWork> find_stage_parts(const Stage& stage, ActionKind kind,
                                        const Activity& activity) {
  const bool backward = kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput ||
                        kind == ActionKind::kBackwardWeight;
  const bool forward = kind == ActionKind::kForward || kind == ActionKind::kRecompute;
  ENSURE(backward || forward || kind == ActionKind::kUpdate,
         "a stage computes F, I, W, B, R and U alone");
  if (backward) return find_backward_parts(stage, kind, activity);
  std::vector<LayerWork> parts;
  const bool saves = kind == ActionKind::kRecompute || stage.memory != MemoryPolicy::kRecompute;
  for_each_layer(stage, [&](LayerId layer) {
    if (forward) {
      if (!activity.has_forward(layer)) return;
      parts.push_back({layer, saves && activity.backward(layer) ? LayerPart::kForward
                                                                : LayerPart::kForwardFrozen});
    } else if (activity.layers.at(layer.index()).weight_gradient) {
      parts.push_back({layer, LayerPart::kUpdate});
    }
  });
  return parts;
}

std::vector<PipelineTable> make_stage_table(const Plan& plan, const ModelProfile& profile,
                                            const Activity& activity) {
  Plan short_plan = plan;
  short_plan.micro_batch_size = samples_in(plan, MicroBatchId{plan.micro_batches() - 1});
  const std::vector<std::vector<int>> pipelines_on = list_pipelines(plan);
  std::vector<PipelineTable> table(plan.pipelines.size());
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    PipelineTable& pipeline = table[p];
    pipeline.boundaries = find_stage_boundaries(plan.pipelines[p], profile, activity);
    for (std::size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const Stage& stage = plan.pipelines[p].stages[s];
      ENSURE(!stage.devices.empty(), "a stage on no device");
      StageEntry& entry = pipeline.stages.emplace_back();
      entry.stage = &stage;
      entry.has_backward = stage_has_backward(stage, activity);
      entry.has_update = stage_has_update(stage, activity);
      const auto find = [&](const Plan& of, DeviceId device) {
        return find_footprint(of, PipelineId{p}, StageId{s}, device, profile, activity,
                              std::span<const int>(pipelines_on[device.index()]));
      };
      for (int slice = 0; slice < slices_of(stage); ++slice) {
        const DeviceId device = stage.devices[static_cast<std::size_t>(slice)];
        auto& footprint = entry.footprints.emplace_back();
        footprint[kWhole] = footprint[kShort] = find(plan, device);
        if (short_plan.micro_batch_size != plan.micro_batch_size) {
          footprint[kShort] = find(short_plan, device);
        }
      }
    }
    for (std::size_t b = 0; b < pipeline.boundaries.size(); ++b) {
      pipeline.stages[pipeline.boundaries[b].from.index()].outgoing.push_back(b);
      pipeline.stages[pipeline.boundaries[b].to.index()].incoming.push_back(b);
    }
  }
  return table;
}

CrossingRows::CrossingRows(const std::vector<PipelineTable>& table) {
  for (const PipelineTable& pipeline : table) {
    const auto slices = [&](StageId stage) {
      return static_cast<std::size_t>(slices_of(*pipeline.stages[stage.index()].stage));
    };
    std::vector<Rows>& rows = rows_.emplace_back();
    std::size_t next = 0;
    for (const StageBoundary& boundary : pipeline.boundaries) {
      rows.push_back({next, slices(boundary.to)});
      next += slices(boundary.from) * slices(boundary.to);
    }
    count_ = std::max(count_, next);
  }
}

std::size_t CrossingRows::of(PipelineId pipeline, std::size_t boundary,
                             std::optional<std::int32_t> from,
                             std::optional<std::int32_t> to) const {
  const Rows& rows = rows_[pipeline.index()][boundary];
  return rows.first + static_cast<std::size_t>(from.value_or(0)) * rows.of_each_slice +
         static_cast<std::size_t>(to.value_or(0));
}

std::size_t find_crossed_boundary(const PipelineTable& pipeline, const Action& send) {
  const bool forward = send.kind == ActionKind::kSendForward;
  ENSURE(forward || send.kind == ActionKind::kSendBackward, "only a SEND crosses a boundary");
  const StageEntry& stage = pipeline.stages.at(send.stage.index());
  const std::vector<std::size_t>& leaving = forward ? stage.outgoing : stage.incoming;
  const int ahead = forward ? 1 : -1;
  const int peer = send.peer ? send.peer->value : send.stage.value + ahead;
  const int other_neighbour = send.peer ? peer : send.stage.value - ahead;
  for (const int candidate : {peer, other_neighbour}) {
    const auto found = std::find_if(leaving.begin(), leaving.end(), [&](std::size_t b) {
      const StageBoundary& boundary = pipeline.boundaries[b];
      return (forward ? boundary.to : boundary.from).value == candidate;
    });
    if (found != leaving.end()) return *found;
  }
  fail_ensure(__FILE__, __LINE__, to_text(send) + " crosses no boundary of its stage");
}

StageFootprint find_held_state(const std::vector<PipelineTable>& table, DeviceId device,
                               const Plan& plan, const ModelProfile& profile,
                               const Activity& activity) {
  StageFootprint sum;
  std::set<LayerId> held;
  for (std::size_t p = 0; p < table.size(); ++p) {
    for (std::size_t s = 0; s < table[p].stages.size(); ++s) {
      const StageEntry& entry = table[p].stages[s];
      const std::vector<DeviceId>& devices = entry.stage->devices;
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) continue;
      const std::size_t before = held.size();
      const std::vector<LayerRange> taken = take_new_layers(*entry.stage, held);
      if (held.size() == before) continue;
      StageFootprint footprint = entry.footprints.front()[kWhole];
      if (table.size() > 1 && before > 0) {
        Plan rest = plan;
        rest.pipelines[p].stages[s].layers = taken;
        footprint = find_footprint(rest, PipelineId{p}, StageId{s}, device, profile, activity);
      } else if (device != devices.front()) {
        footprint = find_footprint(plan, PipelineId{p}, StageId{s}, device, profile, activity);
      }
      sum.parameters += footprint.parameters;
      sum.gradients += footprint.gradients;
      sum.optimizer += footprint.optimizer;
    }
  }
  return sum;
}

}  // namespace frazil
