#pragma once
// From a shape to a plan: whose micro-batches, and where the cuts are. Micro-batches are dealt in
// contiguous shares, each next one to the group that would end first; equal groups get equal shares
// up to one. Groups that are alike get the same cuts: those with the least bottleneck
// (planner/partition/partition.h), as if messages stopped the work of their stages or as if all ran
// beside it, under a rule for memory.

#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "planner/bounds/device_groups.h"
#include "planner/bounds/proposal.h"
#include "planner/bounds/space_sums.h"
#include "planner/partition/partition.h"
#include "planner/plan/placement.h"

namespace frazil {

// How cuts treat memory. The receive buffer of a stage depends on where it is cut, so it is no sum
// over layers: it is left out, or charged at its largest everywhere. What a schedule holds may be
// estimated too high, so that cuts that ignore memory are tried too.
enum class MemoryRule { kWithoutReceive, kWithLargestReceive, kIgnored };

// Of schedules some wait for each message and some for none.
enum class Transfers { kBlocking, kOverlapped };

class Proposer {
 public:
  // All must outlive this.
  Proposer(const SearchSpace& space, const SpaceSums& sums, DeviceGroupClasses& machines,
           Bytes input_per_sample);

  // Shares and classes, with the cuts of blocking transfers that ignore memory.
  const Proposal& deal(const Shape& shape);
  // The same with the cuts of each rule for memory and for transfers, as far as some keep it; each
  // once, blocking ones first.
  std::vector<Proposal> propose(const Shape& shape);
  // With the shares and the cuts of a plan's pipelines, as far as they follow the shape.
  std::optional<Proposal> read(const Shape& shape, const Plan& plan);
  // Held for sure, by the device that misses most: state, and the stash of what the schedule must
  // hold at once.
  struct LeastMemory {
    int device = 0;  // of the machine
    Bytes needed;
    Bytes available;
  };
  LeastMemory least_memory(const Shape& shape, const GroupClass& group);
  // Whatever the cuts: where the devices of a group together are too small, their mean.
  std::optional<LeastMemory> find_hopeless(const Shape& shape, const GroupClass& group);

 private:
  using CutKey = std::tuple<int, int, ShapeVariant, MemoryRule, Transfers, int, int>;
  using EqualKey = std::tuple<int, int, int>;  // micro-batch size, groups, directions
  using DealKey = std::tuple<ShapeCell, int, int, Placement, bool, bool>;

  std::vector<int> share_equally(const Shape& shape) const;
  // What one micro-batch takes on the busiest device of a machine.
  std::int64_t bottleneck_of(const Shape& shape, int machine_of_group);
  std::vector<int> share_by_load(const Shape& shape, const DeviceGroups& groups);
  Proposal deal_by_load(const Shape& shape, const DeviceGroups& groups);
  Proposal classify(const Shape& shape, const DeviceGroups& groups, std::vector<int> shares);
  using CutsOfClasses = std::vector<const std::vector<LayerId>*>;

  void add_cuts(const Shape& shape, Proposal& proposal);
  // Of all classes, or none where no cut of one keeps the rule.
  CutsOfClasses find_cuts(const Shape& shape, const Proposal& dealt, MemoryRule rule,
                          Transfers transfers);
  // Null where none keeps the rule.
  const std::vector<LayerId>* find_cuts(const Shape& shape, const GroupClass& group,
                                        MemoryRule rule, Transfers transfers);
  const std::optional<ChainPartition>& part(const Shape& shape, const GroupClass& group,
                                            MemoryRule rule, Transfers transfers);
  struct GradientTree {
    int sets = 1;   // held at once
    int nodes = 1;  // shipped
  };
  const GradientTree& find_gradients(const MicroBatches& owned, int all);
  // Layers of a shape that no cut parts are one in its chain: so many less.
  int joined_layers(const Shape& shape) const;
  ChainCosts make_costs(const Shape& shape, const Cluster& machine, Transfers transfers) const;
  void add_memory(const Shape& shape, const GroupClass& group, MemoryRule rule,
                  ChainCosts& costs) const;
  Bytes held(const ChainSums& sums, LayerSpan span, int sets, int in_flight, bool recompute) const;
  bool keeps(const Shape& shape, const GroupClass& group, const std::vector<LayerId>& cuts,
             MemoryRule rule) const;

  const SearchSpace& space_;
  const SpaceSums& sums_;
  DeviceGroupClasses& machines_;
  Bytes input_per_sample_;
  std::map<DealKey, Proposal> deals_;
  std::map<EqualKey, Proposal> equal_deals_;  // without cuts
  std::map<CutKey, std::optional<ChainPartition>> cuts_;
  // By micro-batch size, machine, chunks, placement, recomputing, cached prefix.
  std::map<std::tuple<int, int, int, Placement, bool, bool>, std::int64_t> bottlenecks_;
  std::unordered_map<std::uint64_t, GradientTree> gradients_;  // by (all, first, end)
};

}  // namespace frazil
