#pragma once
// A StepPart is what one device leaves of a step that a pool is given; join_parts() makes the
// answer of the process of the parts of all its devices.

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/measuring/recorder.h"
#include "exec/run/jobs/jobs.h"
#include "exec/run/loss_sample.h"
#include "exec/tensors/samples.h"

namespace frazil {

int count_samples(const std::vector<Samples>& micro_batches);

// A step that a pool is given, with its samples by global micro-batch and their numbers in a cache,
// which outlive it.
struct PoolStep {
  const StepOrder& order;
  const std::vector<Samples>& micro_batches;
  const std::vector<std::int64_t>& sample_ids;
};

// The part that one device has in one step.
struct StepPart {
  DeviceId device;
  std::vector<LossSample> losses;
  std::optional<LayerId> non_finite;
  std::vector<GradientSquares> gradient_squares;
  std::vector<Span> spans;
  std::vector<WeightRead> weight_reads;
  std::optional<MeasuredMemory> memory;  // where it is measured
};
// The parts by step, then by device.
using StepParts = std::vector<std::vector<StepPart>>;

// Takes what the recorder of a device has of the step that has just ended there. `allocated`: the
// most that the device's thread had allocated in it.
StepPart take_part(Recorder& recorder, Bytes allocated);

// Joins what the devices have left of one step, in their order. `records`: with their spans.
StepAnswer join_parts(std::vector<StepPart> parts, bool records);

}  // namespace frazil
