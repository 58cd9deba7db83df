#pragma once
// Lower bounds on the time of a step whatever the cuts, for a cell of the search and for the
// variants of a cell. n: some group has so many whole micro-batches (planner/bounds/batch_deals.h);
// W, T: the work of one of all layers, of a stage; G: a group's reductions of all layers; all on
// the best device and the best link of the cluster. A short last micro-batch is left out.
//   total-work   of a group of p devices the mean, (n W + paths + G) / p, and n times the work of
//                the layers that some device must hold together, with their reductions, and of the
//                devices that must hold as many the path of the last one (ChainSums::pigeonhole);
//                of groups that are not equally long the least time in which they can share the
//                micro-batches; work and reductions of all groups / the speed of the fastest
//                devices used. Paths: stage d is the first on device d and begins at layer d or
//                later, so that what one micro-batch must meet before it comes first (and what it
//                must after it, last, where backwards are fused); with two directions it or its
//                mirror image is.
//   best-cut     of schedules with one stage per device: min over cuts of max over stages of
//                head + n T + max(tail, reduction + update): head and tail are what one
//                micro-batch must meet before and after (its F; its B, or I where W may come
//                later).
// A device reduces after its last backward, one layer after the other, the exact tree with as many
// nodes as the deal says (sim/collective_cost.h); with overlap reductions are left out.
// A load of a stage never grows when its first layers go to the stage before, so the longest stage
// below a threshold is always the best one, and a threshold is tried in O(p log L).

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
  // The space and the machines must outlive this.
  WorkBounds(const SearchSpace& space, const DeviceGroupClasses& machines, const Cluster& cluster);

  NamedBound bound(const ChainSums& sums, const ShapeCell& cell) const;
  // Of all cells list_longer() makes of this one.
  NamedBound bound_longer(const ChainSums& sums, const ShapeCell& cell) const;
  // At least bound(). Between the true minimum and 1/256 below it, but above `most` no higher than
  // is needed to say so.
  NamedBound bound(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                   Duration most = Duration::max()) const;
  // Of a group on this machine that has so many whole micro-batches, in a step of such owners.
  NamedBound bound_group(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                         const BatchDeal& deal, const Cluster& machine) const;
  // Bytes that some device of a group holds at least, whatever is recomputed.
  Bytes least_memory(const ChainSums& sums, const ShapeCell& cell) const;
  // A reduction of that many bytes of gradients among `owners` takes at least this, where one of
  // them ships `nodes` nodes of the gradient tree (sim/collective_cost.h).
  Duration reduction(Bytes bytes, int owners, int nodes = 1) const;

 private:
  // Of a group: what its most loaded device takes at least.
  struct GroupTime {
    int devices = 1;
    struct Load {
      Duration share{0};  // of one micro-batch
      Duration once{0};   // reductions, paths
      Duration at_least(std::int64_t micro_batches) const { return share * micro_batches + once; }
      std::int64_t most_within(Duration time, std::int64_t most) const;
    };
    Load one;                // of some device
    Load even;               // of some device ..
    Load more;               // .. or else of some
    Duration work{0};        // of one micro-batch, of all devices
    Duration paths{0};       // of all devices, before their first micro-batch and after the last
    Duration reductions{0};  // of all devices

    Duration at_least(std::int64_t micro_batches) const;
    // Micro-batches that it can take within `time`; at most `most`.
    std::int64_t most_within(Duration time, std::int64_t most) const;
  };

  Duration all_reductions(const ChainSums& sums, const ShapeCell& cell,
                          const BatchDeal& deal) const;
  // Of a device whose first stage begins at layer `first` or later.
  Duration path_before(const ChainSums& sums, int first) const;
  Duration path_after(const ChainSums& sums, const VariantClass& variant, int first) const;
  Duration all_paths(const ChainSums& sums, const VariantClass& variant, int ways,
                     int devices) const;
  GroupTime time_of_group(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                          const BatchDeal& deal, int devices, bool one_way) const;
  Duration total_work(const ChainSums& sums, const ShapeCell& cell, const GroupTime& group) const;
  Duration least_time(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                      const BatchDeal& deal) const;
  // Of schedules that run both ways, over groups of which some have an odd number of devices: these
  // can only be left without micro-batches.
  Duration least_time_of_even(const ChainSums& sums, const ShapeCell& cell,
                              const VariantClass& variant) const;
  bool some_cut_keeps(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                      const BatchDeal& deal, Duration most) const;
  // The same, as far as it follows from what is known.
  bool keeps(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
             const BatchDeal& deal, Duration most) const;
  // No less than `least`; above `most` any time above it.
  Duration best_cut(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                    const BatchDeal& deal, Duration least, Duration most) const;
  int whole_micro_batches(int size) const { return space_.options.batch_size / size; }
  Duration rounding(std::int64_t actions) const;

  // What decides whether a cut keeps a time: cells that differ in nothing else share it.
  using CutKey = std::tuple<int, int, int, BatchDeal, VariantClass>;
  struct KnownTimes {
    Duration too_short{-1};
    Duration enough = Duration::max();
  };

  const SearchSpace& space_;
  mutable std::map<CutKey, KnownTimes> known_cuts_;  // changes no answer
  BatchDeals deals_;
  const Device& device_;
  const Link& link_;
  bool rounds_ = false;              // some device has a slowdown
  std::vector<std::int64_t> speed_;  // of the fastest devices together, 10^12 / ppm rounded up
  std::int64_t least_speed_ = 0;     // of the slowest device, rounded down
};

}  // namespace frazil
