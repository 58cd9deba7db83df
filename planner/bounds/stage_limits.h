#pragma once
// clang-format off
// Lower bounds on a step for one stage of a group, when only this stage's layers [a, b) are known:
// whatever the cuts before a and behind b. With n whole micro-batches and the times F, R, B (or I
// and W) of the stage on its device:
//   any schedule   head(a) + n (F + R + B) + what follows (planner/bounds/group_bound.h); where
//                  backwards split also head(a) + n (F + R + I) + tail of I
//   linear class   head(a) + span(F, I, W, D, K) + what follows, by device-warm-up-cool-down of
//                  planner/prediction/linear_bounds.h, where D is F and I of all layers from b on
//                  and their hops; gpipe, whose device turns once, head(a) + n (F + B) + D + tail
//   memory         a stage that fits holds at most so many micro-batches between F and I as its
//                  device has room for; K is at most that, and where backwards split the chain F, D,
//                  I returns ceil(n / K) times
// A hop counts as the least message that any cut at its place could send, on the link of its place;
// hops and D count only where every boundary joins its neighbours and carries a gradient. All layers
// outside the stage are priced on the group's fastest device without overheads.
//
// Every cut of the group takes at least the largest bound of its stages, so the least such value
// over all cuts bounds the shape; bound_all_cuts() finds it stage by stage, in
// O(stages x layers^2).
// clang-format on

#include <cstdint>
#include <vector>

#include "planner/bounds/proposal.h"
#include "planner/bounds/work_bound.h"

namespace frazil {

class StageLimits {
 public:
  // `joined` layers beside one are kept together in the first stage (a cached prefix). The sums,
  // the cluster and the bounds on reductions must outlive this.
  StageLimits(const Shape& shape, const GroupClass& group, int joined, const ChainSums& sums,
              const Cluster& group_cluster, const WorkBounds& reductions, const Owners& owners);

  int stages() const { return stages_; }
  int layers() const { return sums_.layers(); }
  // Return the least and the most layer that stage `stage` may begin with.
  int least_first(int stage) const;
  int most_first(int stage) const { return layers() - (stages_ - stage); }

  // Returns the least time of a step that fits and whose stage has these layers; kNever if the
  // stage alone misses the memory of its device.
  Duration at_least(int stage, LayerSpan span) const;
  // Must be called once before the next two.
  void bound_all_cuts();
  // Returns the least time of a step whose stages from `stage` on share the layers from `first` on;
  // kNever if they cannot.
  Duration rest_at_least(int stage, int first) const {
    return rest_[static_cast<std::size_t>(stage * (layers() + 1) + first)];
  }
  // Returns the least time of a step over all cuts of the group.
  Duration at_least() const { return rest_at_least(0, 0); }

 private:
  void add_hops(const Cluster& group_cluster);
  Duration outside(LayerSpan span, bool forward) const;
  Duration round_trip(int stage, int end) const;
  Duration span_of(int stage, LayerSpan span, const SpanTimes& times, std::int64_t held) const;
  std::int64_t most_held(int stage, LayerSpan span) const;

  Shape shape_;
  const ChainSums& sums_;
  const Cluster& group_cluster_;
  const WorkBounds& reductions_;
  Owners owners_;
  int stages_ = 1;
  int joined_ = 0;  // layers that the first stage must have beside one
  int share_ = 0;   // micro-batches of a direction
  int whole_ = 0;   // of these, whole ones
  bool splits_ = false;
  bool linear_ = false;  // each stage has a device and a depth of its own
  Device swiftest_;
  Duration slack_{0};                // what rounding may take from a price of all layers
  bool is_joined_ = true;            // all cuts are
  std::vector<bool> chain_from_;     // by cut: it and all later ones are joined and carry
  std::vector<Duration> hops_down_;  // by stage: of all boundaries before it
  std::vector<Duration> hops_up_;
  std::vector<Duration> rest_;  // by stage and first layer
};

}  // namespace frazil
