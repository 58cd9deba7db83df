// Implements the part of planner/plan/plan.h that says which device of a stage works on which
// micro-batches.
#include "planner/plan/plan.h"

#include <algorithm>

#include "planner/plan/stage_slices.h"
#include "profiles/error.h"

namespace frazil {

bool has_shared_stage(const Pipeline& pipeline) {
  return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                     [](const Stage& stage) { return stage.devices.size() > 1; });
}

int turn_of(const Pipeline& pipeline, MicroBatchId micro_batch) {
  int before = 0;
  for (const MicroBatches& owned : pipeline.micro_batches) {
    if (micro_batch < owned.first) break;
    if (micro_batch <= owned.last) return before + micro_batch.value - owned.first.value;
    before += owned.count();
  }
  fail_ensure(__FILE__, __LINE__, "a micro-batch that the pipeline does not own");
}

DeviceId device_of(const Pipeline& pipeline, StageId stage, MicroBatchId micro_batch,
                   std::optional<std::int32_t> slice) {
  const std::vector<DeviceId>& devices = pipeline.stages.at(stage.index()).devices;
  if (slice) return devices.at(static_cast<std::size_t>(*slice));
  if (devices.size() == 1) return devices.front();
  ENSURE(slices_of(pipeline.stages[stage.index()]) == 1, "a micro-batch in slices has no device");
  return devices.at(static_cast<std::size_t>(turn_of(pipeline, micro_batch)) % devices.size());
}

std::vector<MicroBatches> micro_batches_on(const Pipeline& pipeline, StageId stage,
                                           DeviceId device) {
  const Stage& described = pipeline.stages.at(stage.index());
  const std::vector<DeviceId>& devices = described.devices;
  const auto place = std::find(devices.begin(), devices.end(), device);
  if (place == devices.end()) return {};
  if (devices.size() == 1 || slices_of(described) > 1) return pipeline.micro_batches;
  // Neighbouring micro-batches have different devices, so each is an interval of its own.
  std::vector<MicroBatches> own;
  const auto wanted = static_cast<std::size_t>(place - devices.begin());
  std::size_t turn = 0;
  for (const MicroBatches& owned : pipeline.micro_batches) {
    for (MicroBatchId m = owned.first; m <= owned.last; ++m.value, ++turn) {
      if (turn % devices.size() == wanted) own.push_back({m, m});
    }
  }
  return own;
}

}  // namespace frazil
