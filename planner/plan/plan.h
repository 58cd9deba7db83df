#pragma once
// A plan: which layers live where, which device does which micro-batches, in which schedule. The
// same plan goes into the simulator and into the executor. It carries every system of the design
// from the start; what an interpreter cannot do yet it refuses in one sentence.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/plan/schedule_facts.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"
#include "traces/action.h"
#include "traces/freeze_mask.h"

namespace frazil {

// Closed interval of layers.
struct LayerRange {
  LayerId first;
  LayerId last;
  friend auto operator<=>(const LayerRange&, const LayerRange&) = default;
};

// How several devices of one stage share it: whole micro-batches in turn (kData), or every
// micro-batch by samples (kSamples, planner/plan/stage_slices.h). Others are not interpreted now.
enum class DeviceAxis { kData, kSamples, kShard, kTensor, kContext, kExpert };
enum class MemoryPolicy { kKeep, kRecompute, kOffload };

// A convex set of layers on one device, or on several that share them along an axis.
struct Stage {
  std::vector<LayerRange> layers;  // ascending, disjoint
  std::vector<DeviceId> devices;
  DeviceAxis axis = DeviceAxis::kData;
  MemoryPolicy memory = MemoryPolicy::kKeep;
  friend bool operator==(const Stage&, const Stage&) = default;
};

bool holds_layer(const Stage& stage, LayerId layer);
// Calls visit(LayerId) for each layer of the stage, ascending.
template <class Visit>
void for_each_layer(const Stage& stage, Visit visit) {
  for (const LayerRange& range : stage.layers) {
    for (LayerId layer = range.first; layer <= range.last; ++layer.value) visit(layer);
  }
}

// Stages that together hold the model, and the global micro-batches [first, last] they own.
struct Pipeline {
  std::vector<Stage> stages;
  std::vector<MicroBatches> micro_batches;  // ascending, disjoint
  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

struct NamedSchedule {
  ScheduleKind kind = ScheduleKind::kOneForwardOneBackward;
  // K, micro-batches in flight; none: the schedule's own.
  std::optional<int> in_flight = std::nullopt;
  int chunks = 1;  // stages of a pipeline on each device
  friend bool operator==(const NamedSchedule&, const NamedSchedule&) = default;
};
// One list of compute actions per device, given outright.
struct ExplicitSchedule {
  std::vector<std::vector<Action>> devices;
  friend bool operator==(const ExplicitSchedule&, const ExplicitSchedule&) = default;
};
enum class DispatchPolicy { kFifo, kPriority, kLrtf, kSteal };
using ScheduleChoice = std::variant<NamedSchedule, ExplicitSchedule, DispatchPolicy>;

enum class ReductionMode { kExact, kFast };

struct Plan {
  std::string model_hash;
  int batch_size = 1;
  int micro_batch_size = 1;
  FreezeMask mask;
  bool cache_frozen_prefix = false;
  std::vector<Pipeline> pipelines;
  ScheduleChoice schedule;
  ReductionMode reduction = ReductionMode::kExact;
  WeightVersions versions = WeightVersions::kSync;
  Provenance provenance;

  int micro_batches() const { return (batch_size + micro_batch_size - 1) / micro_batch_size; }
  friend bool operator==(const Plan&, const Plan&) = default;
};

// Whether a stage of it lies on several devices.
bool has_shared_stage(const Pipeline& pipeline);

// The device of a stage that works on a micro-batch: its devices take the micro-batches their
// pipeline owns in turn (PipeDream's 1F1B-RR; Narayanan et al. 2019), or with axis samples each its
// slice. Requires: the pipeline owns it; a slice where the stage has slices, and only there.
DeviceId device_of(const Pipeline& pipeline, StageId stage, MicroBatchId micro_batch,
                   std::optional<std::int32_t> slice = std::nullopt);

// What one device of a stage works on, or has a slice of: ascending, disjoint closed intervals.
// None of a device that is not of the stage.
std::vector<MicroBatches> micro_batches_on(const Pipeline& pipeline, StageId stage,
                                           DeviceId device);

// How many of the pipeline's micro-batches come before this one. Requires: the pipeline owns it.
int turn_of(const Pipeline& pipeline, MicroBatchId micro_batch);

// Samples in one global micro-batch of a step over `batch_size` samples: micro_batch_size, but the
// last may be short.
int samples_in(const Plan& plan, MicroBatchId micro_batch);

std::string_view policy_name(DispatchPolicy policy);  // "fifo", "priority", "lrtf", "steal"
std::optional<DispatchPolicy> find_policy(std::string_view name);

// How the provenance of a searched order begins (key "schedule").
inline constexpr std::string_view kSearched = "searched for the least ";
// Whether the lists of the plan come from a search over orders of work, as its provenance says.
bool has_searched_order(const Plan& plan);

// "2 stages x 1 pipeline, 1f1b, 4 micro-batches of 8, cut 7": one line for people.
std::string summarize(const Plan& plan);

// One pipeline of consecutive stages: layer cuts[i] begins stage i + 1; stage i on devices[i].
Pipeline make_pipeline(int layers, const std::vector<LayerId>& cuts,
                       const std::vector<DeviceId>& devices, MicroBatches micro_batches);

}  // namespace frazil
