#include "planner/bounds/proposal.h"

#include "planner/bounds/variant_memory.h"
#include "planner/plan/placement.h"
#include "planner/plan/schedule_facts.h"

namespace frazil {

std::vector<MicroBatches> split_share(int first, int share, int directions) {
  if (directions == 1) return {{MicroBatchId{first}, MicroBatchId{first + share - 1}}};
  const int half = share / 2;
  return {{MicroBatchId{first}, MicroBatchId{first + half - 1}},
          {MicroBatchId{first + half}, MicroBatchId{first + share - 1}}};
}

std::int64_t count_actions(const Shape& shape, const GroupClass& group) {
  const std::int64_t of_stage = facts_of(shape.variant.schedule).splits_backward ? 3 : 2;
  return (static_cast<std::int64_t>(group.cuts.size()) + 1) * group.share * of_stage;
}

Owners owners_of(const Shape& shape, const Proposal& proposal) {
  const int ways = directions(placement_of(shape.variant));
  // The middle one of an odd number of devices has a stage in both directions.
  const bool apart = ways == 1 || (shape.cell.devices % 2 == 0 && shape.cell.longer == 0);
  if (!apart) return {shape.cell.replicas, 1};
  return {shape.cell.replicas * ways, proposal.most_nodes};
}

Plan make_plan(const Shape& shape, const Proposal& proposal, const DeviceGroups& groups,
               const SearchOptions& options, int layers) {
  Plan plan;
  plan.batch_size = options.batch_size;
  plan.micro_batch_size = shape.cell.micro_batch_size;
  plan.mask = options.mask;
  plan.cache_frozen_prefix = shape.variant.cached;
  plan.reduction = options.reduction;
  plan.schedule = shape.variant.named();
  const Placement placement = placement_of(shape.variant);
  int first = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& cuts = proposal.classes[static_cast<std::size_t>(proposal.class_of[g])].cuts;
    const auto devices = static_cast<int>(groups[g].devices.size());
    const auto stages = static_cast<int>(cuts.size()) + 1;
    const auto shares = split_share(first, proposal.shares[g], directions(placement));
    first += proposal.shares[g];
    for (int way = 0; way < directions(placement); ++way) {
      std::vector<DeviceId> device_of;
      for (int s = 0; s < stages; ++s) {
        const int device = device_of_stage(placement, devices, way, s);
        device_of.push_back(groups[g].devices[static_cast<std::size_t>(device)]);
      }
      Pipeline pipeline =
          make_pipeline(layers, cuts, device_of, shares[static_cast<std::size_t>(way)]);
      for (int s = 0; s < stages; ++s) {
        if (!recomputes(shape.variant, s, stages)) continue;
        pipeline.stages[static_cast<std::size_t>(s)].memory = MemoryPolicy::kRecompute;
      }
      plan.pipelines.push_back(std::move(pipeline));
    }
  }
  return plan;
}

Plan make_group_plan(const Shape& shape, const GroupClass& group, const Cluster& group_cluster,
                     const SearchOptions& options, int layers) {
  SearchOptions alone = options;
  const int size = shape.cell.micro_batch_size;
  const int missing = group.has_short ? size - options.batch_size % size : 0;
  alone.batch_size = group.share * size - missing;
  std::vector<DeviceId> devices;
  for (std::size_t d = 0; d < group_cluster.devices.size(); ++d) devices.emplace_back(d);
  return make_plan(shape, {1, {group.share}, {0}, {group}}, {{devices, 0}}, alone, layers);
}

}  // namespace frazil
