#pragma once
// Computes the times of the stages and devices of a group in a step when the cuts are known: the
// work of one micro-batch, what it must meet before a stage (head) and after it (tail), and what
// follows the last backward. Variants with equal placement, chunks, recomputing and splitting of
// backwards have equal loads. Heads and tails follow only the boundaries between neighbouring
// stages, as far as the layers on both sides are joined. The short micro-batch counts for nothing.

#include <vector>

#include "planner/bounds/proposal.h"
#include "planner/bounds/work_bound.h"

namespace frazil {

struct StageLoad {
  LayerSpan span;
  std::size_t device = 0;  // of the group
  SpanTimes times;         // of one micro-batch
  Duration backward{0};    // B, or I and W where they may run as one
  bool has_backward = false;
  bool has_input = false;  // has an I
  // The boundary to the stage before is `joined` if that stage's output crosses it, and `carries`
  // if a gradient crosses back. The two messages of one micro-batch take `down` and `up`.
  bool joined = false;
  bool carries = false;
  Duration down{0};
  Duration up{0};
  // Messages of one micro-batch keep the device before (down) and this one (up) from sending others
  // for so long.
  Duration down_sent{0};
  Duration up_sent{0};
  Duration reduction{0};
  Duration update{0};
  bool updates = false;
  Duration head{0};
  Duration tail{0};
  Duration input_tail{0};  // of I alone

  Duration after() const { return reduction + update; }
  Duration weight() const { return backward - std::min(backward, times.input); }
};

struct DeviceLoad {
  Duration head = kNever;
  Duration work{0};  // of all micro-batches
  Duration weight{0};
  Duration tail = kNever;
  Duration input_tail = kNever;
  // These count the stages with an update: reductions run one after the other, and so do updates.
  Duration reductions{0};
  Duration updates{0};
  Duration least_reduction = kNever;
  Duration least_update = kNever;

  bool has_stage() const { return head != kNever; }
  Duration after() const {
    if (least_update == kNever) return Duration{0};
    return std::max(reductions + least_update, least_reduction + updates);
  }
};

struct GroupLoads {
  int micro_batches = 0;          // whole ones
  bool splits = false;            // backwards
  int ways = 1;                   // directions
  std::vector<StageLoad> stages;  // of the last direction
  std::vector<DeviceLoad> devices;
};

// Adds up the loads of a group of class `group`; `spans` are the layers of its stages.
GroupLoads add_up_loads(const Shape& shape, const GroupClass& group,
                        const std::vector<LayerSpan>& spans, const ChainSums& sums,
                        const Cluster& group_cluster, const WorkBounds& reductions,
                        const Owners& owners);

}  // namespace frazil
