#pragma once
// What one action of a stage computes, what it holds, and what crosses between the stages of a
// pipeline: shared by lowering, bounds and search, so that all three price the same work.

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

// All edges from one stage to another of the same pipeline.
struct StageBoundary {
  StageId from;
  StageId to;
  Bytes activation_per_sample;
  Bytes gradient_per_sample;  // of the edges that carry a gradient
  bool carries = false;       // some edge does
  Bytes buffer_per_sample{};  // of the activation, what layers without a backward read

  friend bool operator==(const StageBoundary&, const StageBoundary&) = default;
};

// Sorted by (from, to). Requires: the stages of the pipeline hold every layer once.
std::vector<StageBoundary> find_stage_boundaries(const Pipeline& pipeline,
                                                 const ModelProfile& profile,
                                                 const Activity& activity);

// The parts of layers that an action of kind F, I, W, B, R or U runs, in order: layers ascending in
// F, R and U, descending in a backward. Empty when the stage has nothing to do. W of a layer
// without I is kBackwardWeightAlone; it belongs to W and to B. F of a stage that recomputes saves
// nothing, so it is kForwardFrozen throughout; R is its F with what is saved. Layers that are
// cached have no F; reading what they put out takes no time here, for nothing measured says how
// long.
std::vector<LayerWork> find_stage_parts(const Stage& stage, ActionKind kind,
                                        const Activity& activity);

// The sizes a micro-batch comes in: the plan's, and what is left for the last one.
enum SizeIndex : std::uint8_t { kWhole, kShort };

struct StageEntry {
  const Stage* stage = nullptr;       // of the plan, which must outlive this
  std::vector<std::size_t> incoming;  // boundaries of its pipeline, by index
  std::vector<std::size_t> outgoing;
  bool has_backward = false;
  bool has_update = false;
  // By slice and SizeIndex; of a stage without slices that of its first device.
  std::vector<std::array<StageFootprint, 2>> footprints;
};

struct PipelineTable {
  std::vector<StageEntry> stages;
  std::vector<StageBoundary> boundaries;
};

// A number for each way from a slice of a boundary's first stage to one of its second, counted anew
// in every pipeline.
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

// One entry per pipeline of the plan.
std::vector<PipelineTable> make_stage_table(const Plan& plan, const ModelProfile& profile,
                                            const Activity& activity);

// The boundary a SEND crosses, by index. Its peer is a neighbour unless it is named.
std::size_t find_crossed_boundary(const PipelineTable& pipeline, const Action& send);

// Parameters, gradients and optimizer state a device holds throughout. State belongs to layers: a
// layer that a device holds for two pipelines is held once.
StageFootprint find_held_state(const std::vector<PipelineTable>& table, DeviceId device,
                               const Plan& plan, const ModelProfile& profile,
                               const Activity& activity);

}  // namespace frazil
