#pragma once
// What ranges of consecutive layers take and hold, in O(1) each, from sums over the layers before a
// position: for one micro-batch of one size under one freeze mask. Layers that are cached have no
// forward, also where they recompute. Prices are those of
// sim/cost_model.h, so that a stage costs here what it costs where it is simulated.

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

// Of one micro-batch on a device, with its slowdown and overhead; zero where there is nothing to
// do. A fused backward takes `backward`, a split one `input` and `weight`.
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
  // On the profiled device without overheads: F, R if `recompute`, I and W.
  Duration work(LayerSpan span, bool recompute) const;
  // Of all layers, whatever the stages: one recomputes its layers where some has a backward, those
  // at the least.
  Duration least_work(bool recompute) const {
    return recompute ? work_recomputing_ : work({0, layers()}, false);
  }
  // Whoever holds which layers, of the j with the most work some of the devices holds k =
  // ceil(j / devices): no less than the least k of them, in work and in gradients. Both ways: every
  // layer twice, for half of the micro-batches each.
  struct Load {
    Duration work{0};  // of one micro-batch, on the profiled device without overheads
    Bytes updated_parameters;
  };
  struct Pigeonhole {
    Load one;   // k and j with the most work
    Load even;  // j: all layers, or those with a backward; so many devices hold k or more ..
    int holders = 1;
    Load more;  // .. unless some device holds k + 1
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

  // Of a cut before layer `cut` in 1 .. layers - 1: all that crosses it, down and up, of one
  // micro-batch; and what goes from the layer before it to the layer after it.
  Bytes down(int cut) const { return down_[static_cast<std::size_t>(cut)]; }
  Bytes up(int cut) const { return up_[static_cast<std::size_t>(cut)]; }
  Bytes neighbour_down(int cut) const { return near_down_[static_cast<std::size_t>(cut)]; }
  Bytes neighbour_up(int cut) const { return near_up_[static_cast<std::size_t>(cut)]; }
  Bytes largest_down() const { return largest_down_; }
  // Whether the layer after the cut reads the one before it, and gives it a gradient: then so do
  // the stages on both sides.
  bool is_joined(int cut) const { return joined_[static_cast<std::size_t>(cut)]; }
  bool carries(int cut) const { return carries_[static_cast<std::size_t>(cut)]; }
  // What must run before the F of `first` can, and after its I or B: the layers before it, as far
  // as they are joined, or carry gradients. Without hops and overheads, on the profiled device.
  Duration head(int first) const { return head_[static_cast<std::size_t>(first)]; }
  Duration tail(int first, bool split) const {
    return (split ? input_tail_ : tail_)[static_cast<std::size_t>(first)];
  }
  // The least of a stage that begins at `first` or later.
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
  Sums parameters_, gradients_, optimizer_, stash_;     // bytes
  Sums inputs_, weights_;                               // layers that have an I, a W
  std::vector<Bytes> down_, up_, near_down_, near_up_;  // by cut
  std::vector<bool> joined_, carries_;                  // by cut
  std::vector<Duration> head_, tail_, input_tail_;      // by cut
  std::vector<Duration> least_head_, least_tail_;       // by cut
  std::array<std::array<std::vector<Pigeonhole>, 2>, 2>
      pigeonholes_;  // one way, recomputing; by devices
  Bytes largest_down_;
  Duration work_recomputing_{0};
};

}  // namespace frazil
