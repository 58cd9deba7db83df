#pragma once
// Makes proposals from a shape: which micro-batches each group gets, and where the cuts are.
// Micro-batches are dealt in contiguous shares, each next one to the group that would end first;
// shares of equal groups differ by one at most. Groups that are alike get the same cuts: those with
// the least bottleneck (planner/partition/partition.h), as if messages stopped the work of their
// stages or as if all messages ran beside it, under a rule for memory.

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/bounds/device_groups.h"
#include "planner/bounds/proposal.h"
#include "planner/bounds/space_sums.h"
#include "planner/bounds/variant_memory.h"
#include "planner/partition/partition.h"
#include "planner/plan/placement.h"

namespace frazil {

// How cuts treat memory. The receive buffer of a stage depends on where the stage is cut, so it is
// no sum over layers: it is left out, or charged at its largest everywhere. What a schedule holds
// may be estimated too high, so cuts that ignore memory are tried too.
enum class MemoryRule { kWithoutReceive, kWithLargestReceive, kIgnored };

// How cuts treat messages: some schedules wait for each message, and some for none.
enum class Transfers { kBlocking, kOverlapped };

class Proposer {
 public:
  // All must outlive this.
  Proposer(const SearchSpace& space, const SpaceSums& sums, DeviceGroupClasses& device_classes,
           Bytes input_per_sample);

  // Deals the micro-batches: returns shares and classes, with the cuts of blocking transfers that
  // ignore memory.
  const Proposal& deal(const Shape& shape);
  // Returns the deal with the cuts of each rule for memory and for transfers, as far as some cuts
  // keep the rule; equal cuts once, blocking ones first.
  std::vector<Proposal> propose(const Shape& shape);
  // Returns the proposal with the shares and the cuts of a plan's pipelines, as far as they follow
  // the shape; none if the plan has another number of pipelines.
  std::optional<Proposal> read(const Shape& shape, const Plan& plan);
  // What a device holds for sure: state, and the stash of what the schedule must hold at once.
  struct LeastMemory {
    int device = 0;  // of the group
    Bytes needed;
    Bytes available;
  };
  // Returns the least memory of the device that misses most, or else has the least room.
  LeastMemory least_memory(const Shape& shape, const GroupClass& group);
  // Returns the mean over the devices of a group if together they are too small whatever the cuts;
  // else none.
  std::optional<LeastMemory> find_hopeless(const Shape& shape, const GroupClass& group);

 private:
  using CutKey = std::tuple<int, int, ShapeVariant, MemoryRule, Transfers, int, int>;
  using EqualKey = std::tuple<int, int, int>;         // micro-batch size, groups, directions
  using LoadedKey = std::tuple<ShapeCell, int, int>;  // cell, arrangement, directions
  // The deals by load of one key, without cuts.
  struct LoadedDeals {
    LoadedKey key;
    std::vector<Proposal> deals;
  };
  using DealKey = std::tuple<ShapeCell, int, int, Placement, bool, bool>;

  std::vector<int> share_equally(const Shape& shape) const;
  // Returns what one micro-batch takes on the busiest device of a class, in ns and at least 1.
  std::int64_t bottleneck_of(const Shape& shape, int device_class);
  std::vector<int> share_by_load(const Shape& shape, const DeviceGroups& groups);
  Proposal deal_by_load(const Shape& shape, const DeviceGroups& groups);
  Proposal classify(const Shape& shape, const DeviceGroups& groups, std::vector<int> shares);
  using CutsOfClasses = std::vector<const std::vector<LayerId>*>;

  void add_cuts(const Shape& shape, Proposal& proposal);
  // Returns the cuts of all classes; empty if no cuts of some class keep the rule.
  CutsOfClasses find_cuts(const Shape& shape, const Proposal& dealt, MemoryRule rule,
                          Transfers transfers);
  // Returns the cuts of one class; null if none keep the rule.
  const std::vector<LayerId>* find_cuts(const Shape& shape, const GroupClass& group,
                                        MemoryRule rule, Transfers transfers);
  const std::optional<ChainPartition>& part(const Shape& shape, const GroupClass& group,
                                            MemoryRule rule, Transfers transfers);
  // Returns by how many layers the chain of a shape is shorter: the layers that no cut parts, those
  // of a cached prefix, are one layer in the chain.
  int joined_layers(const Shape& shape) const;
  ChainCosts make_costs(const Shape& shape, const Cluster& group_cluster,
                        Transfers transfers) const;
  void add_memory(const Shape& shape, const GroupClass& group, MemoryRule rule,
                  ChainCosts& costs) const;
  Bytes held(const ChainSums& sums, LayerSpan span, int sets, const InFlight& in_flight,
             bool recompute) const;
  bool keeps(const Shape& shape, const GroupClass& group, const std::vector<LayerId>& cuts,
             MemoryRule rule) const;

  const SearchSpace& space_;
  const SpaceSums& sums_;
  DeviceGroupClasses& device_classes_;
  Bytes input_per_sample_;
  std::map<DealKey, Proposal> deals_;
  std::map<EqualKey, Proposal> equal_deals_;  // without cuts
  LoadedDeals loaded_;
  std::map<CutKey, std::optional<ChainPartition>> cuts_;
  // Bottlenecks by micro-batch size, device class, chunks, placement, recomputing, cached prefix.
  std::map<std::tuple<int, int, int, Placement, bool, bool>, std::int64_t> bottlenecks_;
};

}  // namespace frazil
