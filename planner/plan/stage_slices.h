#pragma once
// Stages whose devices share every micro-batch by samples (axis samples): of n samples device k of
// a has the slice [floor(k n / a), floor((k + 1) n / a)). What a stage hands to another crosses as
// the intersections of their slices (the relay between groups of Pipe-BD; Jang et al. 2023).

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

// How many slices a stage makes of a micro-batch; 1: none.
int slices_of(const Stage& stage);
bool has_sliced_stage(const Pipeline& pipeline);
// Of a stage without slices: none. Requires: the device is of the stage.
std::optional<std::int32_t> slice_on(const Stage& stage, DeviceId device);
// What a slice has of a micro-batch of so many samples; without a slice all of them.
SampleInterval samples_of(const Stage& stage, std::optional<std::int32_t> slice, int samples);

// What one device of a stage does of a micro-batch.
struct StagePart {
  DeviceId device;
  std::optional<std::int32_t> slice;
  SampleInterval samples;
  friend bool operator==(const StagePart&, const StagePart&) = default;
};
// The parts of a stage in a micro-batch of so many samples that have some of those `wanted`, in the
// order of slices, each cut to these.
std::vector<StagePart> find_parts(const Pipeline& pipeline, StageId stage, MicroBatchId micro_batch,
                                  int samples, const SampleInterval& wanted);
// All of them.
std::vector<StagePart> find_parts(const Pipeline& pipeline, StageId stage, MicroBatchId micro_batch,
                                  int samples);

// Visits what find_parts lists, without a list where the stage lies on one device, as it nearly
// always does.
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

// What an action of one micro-batch has of it; and the parts of another stage, cut to that.
SampleInterval samples_of(const Plan& plan, const Action& action);
std::vector<StagePart> find_peers(const Plan& plan, const Action& action, StageId peer);

// A micro-batch too small to have a sample for each slice of the stage.
std::optional<MicroBatchId> find_thin_micro_batch(const Plan& plan, PipelineId pipeline,
                                                  StageId stage);

// A number for each part of each stage, counted anew in every pipeline: a micro-batch has one
// pipeline, so that (row, micro-batch) names a part of it.
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
