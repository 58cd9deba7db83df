#pragma once
// Time and memory of any range of consecutive layers, in O(1) each, from sums over the layers
// before a position: for one micro-batch of one size under one freeze mask. Cached layers have no
// forward, not even where they recompute. Prices are those of sim/cost_model.h, so a stage costs
// here what it costs where it is simulated.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "planner/plan/activity.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// Layers [first, end).
struct LayerSpan {
  int first = 0;
  int end = 0;
  friend bool operator==(const LayerSpan&, const LayerSpan&) = default;
};

// Times of one micro-batch on a device, with the device's slowdown and overhead; a time is zero
// where there is nothing to do. A fused backward takes `backward`, a split one `input` (I, dgrad)
// and `weight` (W, wgrad).
struct SpanTimes {
  Duration forward{0};
  Duration recompute{0};
  Duration backward{0};
  Duration input{0};
  Duration weight{0};
};

class ChainSums {
 public:
  ChainSums(const ModelProfile& profile, const Activity& activity, int micro_batch_size);

  int layers() const { return static_cast<int>(forward_.size()) - 1; }
  int micro_batch_size() const { return size_; }

  SpanTimes times(LayerSpan span, const Device& device, bool recompute) const;
  Duration update(LayerSpan span, const Device& device) const;
  // Returns F, R if `recompute` (activation checkpointing), I and W of a span, on the profiled
  // device without overheads.
  Duration work(LayerSpan span, bool recompute) const;
  // Returns the least work of all layers, whatever the stages. A stage recomputes all its layers if
  // one has a backward; so at least the layers with a backward are recomputed.
  Duration least_work(bool recompute) const {
    return recompute ? work_recomputing_ : work({0, layers()}, false);
  }
  // The pigeonhole bound: however layers are dealt to devices, some device holds k = ceil(j /
  // devices) of the j layers with the most work, and so no less than the least k of those, in work
  // and in gradients. Schedules that run both ways count every layer twice, for half of the
  // micro-batches each. `one` is for the k and j that give the most work. `even` is for j = all
  // layers, or as many as have a backward: at least `holders` devices hold k layers or more, unless
  // some device holds k + 1, which then takes `more`.
  struct Load {
    Duration work{0};  // of one micro-batch, on the profiled device without overheads
    Bytes updated_parameters;
  };
  struct Pigeonhole {
    Load one;
    Load even;
    int holders = 1;
    Load more;
  };
  const Pigeonhole& pigeonhole(int devices, bool one_way, bool recompute) const {
    const auto& of_kind = pigeonholes_[one_way ? 1 : 0][recompute ? 1 : 0];
    return of_kind[static_cast<std::size_t>(std::min(devices, layers()))];
  }
  bool has_update(LayerSpan span) const { return of(weights_, span) > 0; }
  bool has_input(LayerSpan span) const { return of(inputs_, span) > 0; }
  bool has_backward(LayerSpan span) const { return of(inputs_, span) + of(weights_, span) > 0; }

  Bytes parameters(LayerSpan span) const { return Bytes{of(parameters_, span)}; }
  Bytes updated_parameters(LayerSpan span) const { return Bytes{of(gradients_, span)}; }
  Bytes optimizer(LayerSpan span) const { return Bytes{of(optimizer_, span)}; }
  Bytes stash(LayerSpan span) const { return Bytes{of(stash_, span)}; }
  // Returns the part of the stash that I frees: that of the layers with an I and no W.
  Bytes stash_until_input(LayerSpan span) const { return Bytes{of(input_stash_, span)}; }

  // A cut lies before layer `cut`, in 1 .. layers - 1. down() and up() return the bytes of one
  // micro-batch that cross the cut, activations and gradients; neighbour_down() and neighbour_up()
  // only those between the layer before the cut and the layer after it.
  Bytes down(int cut) const { return down_[static_cast<std::size_t>(cut)]; }
  Bytes up(int cut) const { return up_[static_cast<std::size_t>(cut)]; }
  Bytes neighbour_down(int cut) const { return near_down_[static_cast<std::size_t>(cut)]; }
  Bytes neighbour_up(int cut) const { return near_up_[static_cast<std::size_t>(cut)]; }
  Bytes largest_down() const { return largest_down_; }
  // True if the layer after the cut reads the layer before it (is_joined), and sends it a gradient
  // (carries); then so do the stages on both sides of the cut.
  bool is_joined(int cut) const { return joined_[static_cast<std::size_t>(cut)]; }
  bool carries(int cut) const { return carries_[static_cast<std::size_t>(cut)]; }
  // Return the work that must come before the F of layer `first`, and after its B, or after its I
  // if `split`: that of the layers before it, back to the nearest cut that is not joined (head) or
  // carries no gradient (tail). Messages and overheads are left out; times are those of the
  // profiled device.
  Duration head(int first) const { return head_[static_cast<std::size_t>(first)]; }
  Duration tail(int first, bool split) const {
    return (split ? input_tail_ : tail_)[static_cast<std::size_t>(first)];
  }
  // Return the least head and the least tail of a fused backward of all stages that begin at layer
  // `first` or later.
  Duration least_head(int first) const { return least_head_[static_cast<std::size_t>(first)]; }
  Duration least_tail(int first) const { return least_tail_[static_cast<std::size_t>(first)]; }

 private:
  using Sums = std::vector<std::int64_t>;
  static std::int64_t of(const Sums& sums, LayerSpan span) {
    return sums[static_cast<std::size_t>(span.end)] - sums[static_cast<std::size_t>(span.first)];
  }

  void add_layers(const ModelProfile& profile, const Activity& activity);
  void add_edges(const ModelProfile& profile, const Activity& activity);
  void add_paths();
  void add_pigeonholes();

  int size_;
  Sums forward_, frozen_, input_, weight_, update_;     // ns
  Sums parameters_, gradients_, optimizer_;             // bytes
  Sums stash_, input_stash_;                            // bytes
  Sums inputs_, weights_;                               // layers that have an I, a W
  std::vector<Bytes> down_, up_, near_down_, near_up_;  // by cut
  std::vector<bool> joined_, carries_;                  // by cut
  std::vector<Duration> head_, tail_, input_tail_;      // by cut
  std::vector<Duration> least_head_, least_tail_;       // by cut
  // The pigeonhole bounds, by one way or both, recomputing or not, and devices.
  std::array<std::array<std::vector<Pigeonhole>, 2>, 2> pigeonholes_;
  Bytes largest_down_;
  Duration work_recomputing_{0};
};

}  // namespace frazil
