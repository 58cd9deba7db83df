#pragma once
// clang-format off
// Lower bounds on the time of a step whatever the cuts, for a cell of the search and for the
// variants of a cell. Some group has n whole micro-batches (planner/bounds/batch_deals.h). W is the
// work of one micro-batch in all layers, T that in a stage, G a group's reductions of all layers,
// all on the best device and the best link of the cluster. A short last micro-batch is left out.
// Where the devices of a cell cannot have one process, the commit round comes on top of each bound.
//   total-work   the largest of
//                - a group of p devices: the mean, (n W + paths + G) / p
//                - a group: n times the work of the layers that some device must hold together,
//                  with their reductions, and for the devices that must hold as many the path of
//                  the last one (ChainSums::pigeonhole)
//                - groups of unequal length: the least time in which they can share the batch
//                - all groups: work and reductions / the speed of the fastest devices used
//   best-cut     schedules with one stage per device: min over cuts of max over stages of
//                head + n T + max(tail, reduction + update)
// Paths: stage d is the first on device d and begins at layer d or later. So what one micro-batch
// must meet before layer d comes first, and what it must meet after layer d comes last where
// backwards are fused. With two directions this holds for a stage or for its mirror image. Head and
// tail are what one micro-batch must meet before a stage (F) and after it (B, or I where W may come
// later).
//
// A device reduces after its last backward, one layer after the other, the exact tree with as many
// nodes as the deal says (sim/collective_cost.h); with overlap reductions are left out. The load of
// a stage never grows when its first layers go to the stage before. So the longest stage below a
// threshold is always the best one, and a threshold is tried in O(p log L) for L layers.
// clang-format on

#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "planner/bounds/batch_deals.h"
#include "planner/bounds/chain_sums.h"
#include "planner/bounds/device_groups.h"

namespace frazil {

struct NamedBound {
  Duration time{0};
  std::string_view name;
};

class WorkBounds {
 public:
  // Requires: the space and the device classes outlive this.
  WorkBounds(const SearchSpace& space, const DeviceGroupClasses& device_classes,
             const Cluster& cluster);

  // Returns the bound on all variants of a cell.
  NamedBound bound(const ChainSums& sums, const ShapeCell& cell) const;
  // Returns the bound on all cells that list_longer() makes of this one.
  NamedBound bound_longer(const ChainSums& sums, const ShapeCell& cell) const;
  // Returns the bound on the variants of one class, at least that on the whole cell. It lies
  // between the true minimum and 1/256 below that, but above `most` it is no higher than is needed
  // to say so.
  NamedBound bound(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                   Duration most = kNever) const;
  // Returns the bound on a group on these devices that has as many whole micro-batches as the deal
  // says, in a step whose owners are those of the deal.
  NamedBound bound_group(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                         const BatchDeal& deal, const Cluster& group_cluster) const;
  // Returns the bytes that some device of a group holds at least, whatever is recomputed.
  Bytes least_memory(const ChainSums& sums, const ShapeCell& cell) const;
  // Returns the least time of a reduction of that many bytes of gradients among `owners`, of whom
  // one ships `nodes` nodes of the gradient tree (sim/collective_cost.h).
  Duration reduction(Bytes bytes, int owners, int nodes = 1) const;

 private:
  // The least time of a group: some device takes `one`, some device takes `even` or else some
  // device takes `more`, and the mean over the devices follows from the sums.
  struct GroupTime {
    int devices = 1;
    struct Load {
      Duration share{0};  // of one micro-batch
      Duration once{0};   // reductions, paths
      Duration at_least(std::int64_t micro_batches) const { return share * micro_batches + once; }
      std::int64_t most_within(Duration time, std::int64_t most) const;
    };
    Load one;
    Load even;
    Load more;
    Duration work{0};        // of one micro-batch, of all devices
    Duration paths{0};       // of all devices, before their first micro-batch and after the last
    Duration reductions{0};  // of all devices

    Duration at_least(std::int64_t micro_batches) const;
    // Returns how many micro-batches the group can take within `time`; at most `most`.
    std::int64_t most_within(Duration time, std::int64_t most) const;
  };

  // Returns the least time within which so many groups of one kind and of another, at least one
  // each, can take all micro-batches together.
  static Duration time_to_share(std::int64_t micro_batches, const GroupTime& own,
                                std::int64_t own_groups, const GroupTime& other,
                                std::int64_t other_groups);
  Duration all_reductions(const ChainSums& sums, const ShapeCell& cell,
                          const BatchDeal& deal) const;
  // Return the path before and after the work of a device whose first stage begins at layer `first`
  // or later.
  Duration path_before(const ChainSums& sums, int first) const;
  Duration path_after(const ChainSums& sums, const VariantClass& variant, int first) const;
  Duration all_paths(const ChainSums& sums, const VariantClass& variant, int ways,
                     int devices) const;
  GroupTime time_of_group(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                          const BatchDeal& deal, int devices, bool one_way) const;
  Duration total_work(const ChainSums& sums, const ShapeCell& cell, const GroupTime& group) const;
  Duration least_time(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                      const BatchDeal& deal) const;
  // Returns the least time of schedules that run both ways over groups of unequal length: the
  // groups with an odd number of devices can only be left without micro-batches.
  Duration least_time_of_even(const ChainSums& sums, const ShapeCell& cell,
                              const VariantClass& variant) const;
  // True if under some cut every stage takes at most `most`.
  bool some_cut_keeps(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                      const BatchDeal& deal, Duration most) const;
  // Returns what some_cut_keeps() would, and asks it only where earlier answers do not decide.
  bool keeps(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
             const BatchDeal& deal, Duration most) const;
  // Returns the best-cut bound, or `least` if that is larger; a bound above `most` may be any time
  // above `most`.
  Duration best_cut(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                    const BatchDeal& deal, Duration least, Duration most) const;
  // Returns the commit round that every step on so many devices has.
  Duration commit_round(const ChainSums& sums, int devices) const;
  NamedBound with_commit(NamedBound bound, const ChainSums& sums, const ShapeCell& cell) const;
  // Return the bounds without a commit round.
  NamedBound bound_work(const ChainSums& sums, const ShapeCell& cell) const;
  NamedBound bound_work(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                        Duration most) const;
  int whole_micro_batches(int size) const { return space_.options.batch_size / size; }
  Duration rounding(std::int64_t actions) const;

  // The key is what decides whether a cut keeps a time; cells with equal keys share what is known.
  using CutKey = std::tuple<int, int, int, BatchDeal, VariantClass>;
  struct KnownTimes {
    Duration too_short{-1};
    Duration enough = kNever;
  };

  const SearchSpace& space_;
  mutable std::map<CutKey, KnownTimes> known_cuts_;  // changes no answer
  BatchDeals deals_;
  const Device& device_;
  const Link& link_;
  bool rounds_ = false;              // some device's time_ppm is not a million
  std::vector<std::int64_t> speed_;  // of the fastest devices together, 10^12 / ppm rounded up
  std::int64_t least_speed_ = 0;     // of the slowest device, rounded down
  Duration commit_round_{0};         // 0 where some schedule has none
  int largest_process_ = 0;          // its devices
};

}  // namespace frazil
