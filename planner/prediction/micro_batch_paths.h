#pragma once
// Prices the micro-batches of one pipeline, each on its own, for lower bounds: the times of their
// work on the devices they meet, and the longest paths of one micro-batch over the DAG of stages.

#include <optional>
#include <vector>

#include "planner/lowering/stage_work.h"
#include "planner/orders/device_order.h"
#include "profiles/setting.h"

namespace frazil {

// The part of one micro-batch that one device of a stage works on. Without slices there is one part
// per stage, in order.
struct RoutePart {
  StageId stage;
  DeviceId device;
  int samples = 0;
};
// The samples that two parts exchange. Without slices there is one crossing per boundary.
struct RouteCrossing {
  std::size_t boundary = 0;  // by index in the pipeline
  std::size_t from = 0;      // the sending part, by index
  std::size_t to = 0;        // the receiving part
  int samples = 0;
};

// The times of the parts and crossings of one micro-batch.
struct MicroBatchTimes {
  std::vector<StageTimes> parts;  // 0 for work that a stage does not have; B is all backward_input
  std::vector<Duration> recompute;
  std::vector<Duration> down;  // by crossing: transfer and latency of the activations
  std::vector<Duration> up;    // by crossing: transfer and latency of the gradients
};

// The longest paths of one micro-batch alone, by part.
struct MicroBatchPath {
  std::vector<Duration> head;           // before its F
  std::vector<Duration> after_forward;  // after its F
  std::vector<Duration> after_input;    // after its I or B
};

// The micro-batches of a pipeline that have one size and one device in each stage.
struct MicroBatchClass {
  int count = 0;
  std::vector<RoutePart> parts;  // by stage and slice
  std::vector<RouteCrossing> crossings;
  MicroBatchTimes times;
  MicroBatchPath path;
};

class MicroBatchPricing {
 public:
  // The plan, profile and cluster must outlive this.
  MicroBatchPricing(const Plan& plan, Setting setting);

  const Activity& activity() const { return activity_; }
  // True if every backward is known to be a B, or an I that has no W.
  bool fused() const { return fused_; }

  Duration update(const StageEntry& stage, DeviceId device) const;
  Duration overhead(DeviceId device) const;

  // Returns the classes in the order of their first micro-batches; the class of the short
  // micro-batch comes last.
  std::vector<MicroBatchClass> find_classes(PipelineId pipeline, const PipelineTable& table) const;

 private:
  Duration compute(const StageEntry& stage, DeviceId device, ActionKind kind, int samples) const;
  StageTimes stage_times(const StageEntry& stage, DeviceId device, int samples) const;
  Duration crossing(DeviceId from, DeviceId to, Bytes size) const;
  MicroBatchTimes find_times(const PipelineTable& table, const MicroBatchClass& of) const;
  MicroBatchPath find_path(const PipelineTable& table, const MicroBatchClass& of) const;

  const Plan& plan_;
  Setting setting_;
  Activity activity_;
  bool fused_;
};

}  // namespace frazil
