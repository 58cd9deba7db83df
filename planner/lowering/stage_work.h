#pragma once
// Describes what one action of a stage computes, what it holds, and what crosses between the stages
// of a pipeline. Lowering, bounds and search all price their work by this unit.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/lowering/footprint.h"
#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "sim/work.h"
#include "traces/action.h"

namespace frazil {

// All edges from one stage to another stage of one pipeline, with their bytes.
struct StageBoundary {
  StageId from;
  StageId to;
  Bytes activation_per_sample;
  Bytes gradient_per_sample;  // of the edges that carry a gradient
  bool carries = false;       // some edge carries a gradient
  Bytes buffer_per_sample{};  // the part of the activation that layers without a backward read

  friend bool operator==(const StageBoundary&, const StageBoundary&) = default;
};

// Returns the boundaries sorted by (from, to). Requires: the stages of the pipeline hold every
// layer once.
std::vector<StageBoundary> find_stage_boundaries(const Pipeline& pipeline,
                                                 const ModelProfile& profile,
                                                 const Activity& activity);

// Returns the parts of layers that an action of kind F, I, W, B, R or U runs, in order: layers
// ascend in F, R and U and descend in a backward. The result is empty if the stage has nothing to
// do. The W of a layer without I is kBackwardWeightAlone; it belongs to W and to B. The F of a
// stage that recomputes saves nothing, so all its parts are kForwardFrozen; R runs the forward
// again and saves. Idle and cached layers have no F; reading a cached output takes no time here,
// because no measurement says how long it takes.
std::vector<LayerWork> find_stage_parts(const Stage& stage, ActionKind kind,
                                        const Activity& activity);

// The two sizes of a micro-batch: the plan's size, and the rest that is left for the last one.
enum SizeIndex : std::uint8_t { kWhole, kShort };

struct StageEntry {
  const Stage* stage = nullptr;       // of the plan, which must outlive this
  std::vector<std::size_t> incoming;  // boundaries of its pipeline, by index
  std::vector<std::size_t> outgoing;
  bool has_backward = false;
  bool has_update = false;
  // The footprints by slice and SizeIndex; a stage without slices has those of its first device.
  std::vector<std::array<StageFootprint, 2>> footprints;
};

struct PipelineTable {
  std::vector<StageEntry> stages;
  std::vector<StageBoundary> boundaries;
};

// Numbers the ways from a slice of a boundary's first stage to a slice of its second stage, counted
// anew in every pipeline.
class CrossingRows {
 public:
  explicit CrossingRows(const std::vector<PipelineTable>& table);

  std::size_t count() const { return count_; }  // over the pipeline with most
  std::size_t of(PipelineId pipeline, std::size_t boundary, std::optional<std::int32_t> from,
                 std::optional<std::int32_t> to) const;

 private:
  struct Rows {
    std::size_t first = 0;
    std::size_t of_each_slice = 1;
  };
  std::vector<std::vector<Rows>> rows_;  // by pipeline and boundary
  std::size_t count_ = 0;
};

// Returns one table per pipeline of the plan.
std::vector<PipelineTable> make_stage_table(const Plan& plan, const ModelProfile& profile,
                                            const Activity& activity);

// Returns the index of the boundary that a SEND crosses. If the SEND names no peer, that is the
// stage after (SEND_F) or before (SEND_B), or else the other neighbour. Requires: a SEND_F or
// SEND_B that crosses a boundary of its stage (else std::logic_error).
std::size_t find_crossed_boundary(const PipelineTable& pipeline, const Action& send);

// Returns the parameters, gradients and optimizer state that a device holds throughout. State
// belongs to layers: a layer that a device holds for two pipelines counts once. The other fields of
// the result are 0.
StageFootprint find_held_state(const std::vector<PipelineTable>& table, DeviceId device,
                               const Plan& plan, const ModelProfile& profile,
                               const Activity& activity);

}  // namespace frazil
