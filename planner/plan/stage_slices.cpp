#include "planner/plan/stage_slices.h"

#include <algorithm>

#include "profiles/error.h"

namespace frazil {

int slices_of(const Stage& stage) {
  return stage.axis == DeviceAxis::kSamples ? static_cast<int>(stage.devices.size()) : 1;
}

std::optional<std::int32_t> slice_on(const Stage& stage, DeviceId device) {
  if (slices_of(stage) == 1) return std::nullopt;
  const auto place = std::find(stage.devices.begin(), stage.devices.end(), device);
  ENSURE(place != stage.devices.end(), "the slice of a device of another stage");
  return static_cast<std::int32_t>(place - stage.devices.begin());
}

SampleInterval samples_of(const Stage& stage, std::optional<std::int32_t> slice, int samples) {
  if (!slice) return {0, samples};
  const auto bound = [&](std::int64_t k) {
    return static_cast<int>(k * samples / slices_of(stage));
  };
  return {bound(*slice), bound(*slice + 1)};
}

std::vector<StagePart> find_parts(const Pipeline& pipeline, StageId stage_id,
                                  MicroBatchId micro_batch, int samples,
                                  const SampleInterval& wanted) {
  const Stage& stage = pipeline.stages[stage_id.index()];
  const int slices = slices_of(stage);
  if (slices == 1) return {{device_of(pipeline, stage_id, micro_batch), std::nullopt, wanted}};
  std::vector<StagePart> parts;
  for (std::int32_t slice = 0; slice < slices; ++slice) {
    SampleInterval own = samples_of(stage, slice, samples);
    own.first = std::max(own.first, wanted.first);
    own.end = std::min(own.end, wanted.end);
    if (own.first >= own.end) continue;
    parts.push_back({stage.devices[static_cast<std::size_t>(slice)], slice, own});
  }
  return parts;
}

std::vector<StagePart> find_parts(const Pipeline& pipeline, StageId stage, MicroBatchId micro_batch,
                                  int samples) {
  return find_parts(pipeline, stage, micro_batch, samples, {0, samples});
}

SampleInterval samples_of(const Plan& plan, const Action& action) {
  const Stage& stage = plan.pipelines[action.pipeline.index()].stages[action.stage.index()];
  return samples_of(stage, action.slice, samples_in(plan, action.micro_batches->first));
}

std::vector<StagePart> find_peers(const Plan& plan, const Action& action, StageId peer) {
  const MicroBatchId m = action.micro_batches->first;
  return find_parts(plan.pipelines[action.pipeline.index()], peer, m, samples_in(plan, m),
                    samples_of(plan, action));
}

std::optional<MicroBatchId> find_thin_micro_batch(const Plan& plan, PipelineId pipeline,
                                                  StageId stage) {
  const Pipeline& of = plan.pipelines[pipeline.index()];
  const int slices = slices_of(of.stages[stage.index()]);
  if (slices == 1 || of.micro_batches.empty()) return std::nullopt;
  // Only the last micro-batch of a batch may be smaller than the others.
  for (const MicroBatchId m : {of.micro_batches.front().first, of.micro_batches.back().last}) {
    if (samples_in(plan, m) < slices) return m;
  }
  return std::nullopt;
}

PartRows::PartRows(const std::vector<Pipeline>& pipelines) {
  for (const Pipeline& pipeline : pipelines) {
    std::vector<std::size_t>& first = first_.emplace_back();
    std::size_t next = 0;
    for (const Stage& stage : pipeline.stages) {
      first.push_back(next);
      next += static_cast<std::size_t>(slices_of(stage));
    }
    count_ = std::max(count_, next);
  }
}

}  // namespace frazil
