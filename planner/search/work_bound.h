#pragma once
// Lower bounds on the time of a step whatever the cuts, for a cell of the search and for the
// variants of a cell. n = ceil(whole micro-batches / groups): some group has that many. W, T: the
// work of one micro-batch of all layers, of a stage; all on the best device and the best link of
// the cluster. A short last micro-batch is left out.
//   total-work   the work of the batch / the speed of the fastest devices used; n max(W / p, half
//   of
//                the largest layer, which two directions may share); of groups that are not equally
//                long the least time in which they can share the micro-batches
//   best-cut     of schedules with one stage per device: min over cuts of max over stages of
//                head + n T + max(tail, reduction + update): head and tail are what one
//                micro-batch must meet before and after (its F; its B, or I where W may come
//                later). The reduction is a ring's, which no exchange of the exact tree undercuts
//                (sim/collective_cost.h); with overlap it is left out.
//   mean-device  of schedules with several stages per device and one direction: stage d is the
//   first
//                on device d and begins at layer d or later; the mean over devices of head + work
//                (+ tail, backwards fused)
// A load of a stage never grows when its first layers go to the stage before, so the longest stage
// below a threshold is always the best one, and a threshold is tried in O(p log L).

#include <string_view>
#include <vector>

#include "planner/search/chain_sums.h"
#include "planner/search/machines.h"

namespace frazil {

struct NamedBound {
  Duration time{0};
  std::string_view name;
};

// What the variants of a cell have in common as far as best-cut goes.
struct VariantClass {
  bool one_stage_per_device = true;
  bool one_way = true;
  bool splits = false;
  bool recompute = false;
  friend auto operator<=>(const VariantClass&, const VariantClass&) = default;
};
VariantClass class_of(const ShapeVariant& variant);

class WorkBounds {
 public:
  // The space and the machines must outlive this.
  WorkBounds(const SearchSpace& space, const Machines& machines, const Cluster& cluster);

  NamedBound bound(const ChainSums& sums, const ShapeCell& cell) const;
  // Of all cells list_longer() makes of this one.
  NamedBound bound_longer(const ChainSums& sums, const ShapeCell& cell) const;
  // At least bound(). Between the true minimum and 1/256 below it.
  NamedBound bound(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant) const;
  // Bytes that some device of a group holds at least, whatever is recomputed.
  Bytes least_memory(const ChainSums& sums, const ShapeCell& cell) const;
  // A reduction of that many bytes of gradients among `owners` takes at least this, where one of
  // them ships `nodes` nodes of the gradient tree (sim/collective_cost.h).
  Duration reduction(Bytes bytes, int owners, int nodes = 1) const;

 private:
  // Of a group: what its most loaded device takes at least.
  struct GroupTime {
    int devices = 1;
    Duration share{0};       // of one micro-batch, of one device
    Duration work{0};        // of one micro-batch, of all devices
    Duration reductions{0};  // of all devices

    Duration at_least(std::int64_t micro_batches) const;
    // Micro-batches that it can take within `time`; at most `most`.
    std::int64_t most_within(Duration time, std::int64_t most) const;
  };

  Duration share_of_work(const ChainSums& sums, int devices) const;
  Duration all_reductions(const ChainSums& sums, const ShapeCell& cell) const;
  GroupTime time_of_group(const ChainSums& sums, const ShapeCell& cell, int devices) const;
  Duration total_work(const ChainSums& sums, const ShapeCell& cell, int devices) const;
  NamedBound mean_device(const ChainSums& sums, const ShapeCell& cell,
                         const VariantClass& variant) const;
  bool some_cut_keeps(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                      Duration most) const;
  int whole_micro_batches(int size) const { return space_.options.batch_size / size; }
  Duration rounding(std::int64_t actions) const;

  const SearchSpace& space_;
  const Device& device_;
  const Link& link_;
  bool rounds_ = false;              // some device has a slowdown
  std::vector<std::int64_t> speed_;  // of the fastest devices together, 10^12 / ppm rounded up
  std::int64_t least_speed_ = 0;     // of the slowest device, rounded down
};

}  // namespace frazil
