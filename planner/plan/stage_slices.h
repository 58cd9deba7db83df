#pragma once
// Tells the slices of micro-batches of stages whose devices share every micro-batch by samples
// (axis samples). Device k of the a devices of a stage has the samples [first(k), first(k + 1)) of
// a micro-batch of n samples, where first(k) = floor(k n / a). A message between two stages crosses
// as the intersections of their slices (the relay between groups of Pipe-BD; Jang et al. 2023).

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/plan/plan.h"

namespace frazil {

// Samples [first, end) of a micro-batch.
struct SampleInterval {
  int first = 0;
  int end = 0;

  int count() const { return end - first; }
  friend auto operator<=>(const SampleInterval&, const SampleInterval&) = default;
};

// Returns how many slices a stage makes of a micro-batch; 1 if it has no slices.
int slices_of(const Stage& stage);
// Returns the slice of a device, or none if the stage has no slices. Requires: the device is of the
// stage.
std::optional<std::int32_t> slice_on(const Stage& stage, DeviceId device);
// Returns the samples that a slice has of a micro-batch of `samples` samples; without a slice, all
// samples.
SampleInterval samples_of(const Stage& stage, std::optional<std::int32_t> slice, int samples);

// The part of a micro-batch that one device of a stage works on.
struct StagePart {
  DeviceId device;
  std::optional<std::int32_t> slice;
  SampleInterval samples;
  friend bool operator==(const StagePart&, const StagePart&) = default;
};
// Returns the parts of a stage in a micro-batch of `samples` samples that overlap the samples
// `wanted`, in the order of slices, each cut to `wanted`.
std::vector<StagePart> find_parts(const Pipeline& pipeline, StageId stage, MicroBatchId micro_batch,
                                  int samples, const SampleInterval& wanted);
// Returns all parts of a stage in a micro-batch of `samples` samples.
std::vector<StagePart> find_parts(const Pipeline& pipeline, StageId stage, MicroBatchId micro_batch,
                                  int samples);

// Visits what find_parts lists. It makes no list if the stage lies on one device, the common case.
template <class Visit>
void visit_parts(const Pipeline& pipeline, StageId stage, MicroBatchId micro_batch, int samples,
                 const SampleInterval& wanted, Visit visit) {
  const std::vector<DeviceId>& devices = pipeline.stages[stage.index()].devices;
  if (devices.size() == 1) {
    visit(StagePart{devices.front(), std::nullopt, wanted});
    return;
  }
  for (const StagePart& part : find_parts(pipeline, stage, micro_batch, samples, wanted)) {
    visit(part);
  }
}

// Returns the samples that an action has of its one micro-batch.
SampleInterval samples_of(const Plan& plan, const Action& action);
// Returns the parts of the stage `peer` in the action's micro-batch, cut to the action's samples.
std::vector<StagePart> find_peers(const Plan& plan, const Action& action, StageId peer);

// Finds a micro-batch too small to have a sample for each slice of the stage, if there is one.
std::optional<MicroBatchId> find_thin_micro_batch(const Plan& plan, PipelineId pipeline,
                                                  StageId stage);

// Numbers the parts of all stages, counted anew in every pipeline. A micro-batch belongs to one
// pipeline, so the pair (row, micro-batch) names one part of that micro-batch.
class PartRows {
 public:
  explicit PartRows(const std::vector<Pipeline>& pipelines);

  std::size_t count() const { return count_; }  // over the pipeline with most
  std::size_t of(PipelineId pipeline, StageId stage, std::optional<std::int32_t> slice) const {
    return first_[pipeline.index()][stage.index()] + static_cast<std::size_t>(slice.value_or(0));
  }

 private:
  std::vector<std::vector<std::size_t>> first_;  // by pipeline and stage
  std::size_t count_ = 0;
};

}  // namespace frazil
