#pragma once
// What micro-batches of one pipeline take, apart from each other: the times of their work on the
// devices they meet, and the longest paths of one of them over the DAG of stages. For lower bounds.

#include <optional>
#include <vector>

#include "planner/lowering/stage_work.h"
#include "planner/orders/device_order.h"
#include "profiles/cluster.h"

namespace frazil {

// What one device of a stage does of one micro-batch, and what two such parts exchange. Without
// slices there is one part per stage, in order, and one crossing per boundary.
struct RoutePart {
  StageId stage;
  DeviceId device;
  int samples = 0;
};
struct RouteCrossing {
  std::size_t boundary = 0;  // of the pipeline
  std::size_t from = 0;      // parts
  std::size_t to = 0;
  int samples = 0;
};

// Times of the parts and crossings of one micro-batch.
struct MicroBatchTimes {
  std::vector<StageTimes> parts;  // zero where a stage has none; B is an input part alone
  std::vector<Duration> recompute;
  std::vector<Duration> down;  // by crossing: transfer and latency of the activations
  std::vector<Duration> up;    // of the gradients
};

// What one micro-batch alone has to wait for, by part.
struct MicroBatchPath {
  std::vector<Duration> head;           // before its F
  std::vector<Duration> after_forward;  // after its F
  std::vector<Duration> after_input;    // after its I or B
};

// The micro-batches of a pipeline that have one size and the same device in each stage.
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
  MicroBatchPricing(const Plan& plan, const ModelProfile& profile, const Cluster& cluster);

  const Activity& activity() const { return activity_; }
  // Whether every backward is a B, or an I that has no W. What is not known to be may be split.
  bool fused() const { return fused_; }

  Duration update(const StageEntry& stage, DeviceId device) const;
  Duration overhead(DeviceId device) const;

  // In the order of their first micro-batches, the short one last.
  std::vector<MicroBatchClass> find_classes(PipelineId pipeline, const PipelineTable& table) const;

 private:
  Duration compute(const StageEntry& stage, DeviceId device, ActionKind kind, int samples) const;
  StageTimes stage_times(const StageEntry& stage, DeviceId device, int samples) const;
  Duration crossing(DeviceId from, DeviceId to, Bytes size) const;
  MicroBatchTimes find_times(const PipelineTable& table, const MicroBatchClass& of) const;
  MicroBatchPath find_path(const PipelineTable& table, const MicroBatchClass& of) const;

  const Plan& plan_;
  const ModelProfile& profile_;
  const Cluster& cluster_;
  Activity activity_;
  bool fused_;
};

}  // namespace frazil
