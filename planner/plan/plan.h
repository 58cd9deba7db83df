#pragma once
// A plan says which layers live where, which device does which micro-batches, and in which
// schedule. The simulator and the executor read the same plan. The types can express more than
// either of them interprets; an interpreter refuses what it cannot do with InfeasibleError, in one
// sentence.

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

// How several devices share one stage: kData, whole micro-batches in turn; kSamples, every
// micro-batch split by samples (planner/plan/stage_slices.h). The other axes are not interpreted.
enum class DeviceAxis { kData, kSamples, kShard, kTensor, kContext, kExpert };
// What a stage does with its saved activations (stash) between F and backward; kRecompute is
// activation checkpointing, kOffload is not interpreted.
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
// Calls visit(LayerId) for each layer of the ranges, or of the stage, in their order.
template <class Visit>
void for_each_layer(const std::vector<LayerRange>& ranges, Visit visit) {
  for (const LayerRange& range : ranges) {
    for (LayerId layer = range.first; layer <= range.last; ++layer.value) visit(layer);
  }
}
template <class Visit>
void for_each_layer(const Stage& stage, Visit visit) {
  for_each_layer(stage.layers, visit);
}
// True if holds(LayerId) for some layer of the stage.
template <class Predicate>
bool any_layer(const Stage& stage, Predicate holds) {
  bool any = false;
  for_each_layer(stage, [&](LayerId layer) { any = any || holds(layer); });
  return any;
}

// Stages that together hold the model, and the global micro-batches that they own, as closed
// intervals [first, last].
struct Pipeline {
  std::vector<Stage> stages;
  std::vector<MicroBatches> micro_batches;  // ascending, disjoint
  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

struct NamedSchedule {
  ScheduleKind kind = ScheduleKind::kOneForwardOneBackward;
  // K, the micro-batches in flight; none means the schedule's own depth.
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

// The most micro-batches of a step; a question with more is taken for a mistake.
inline constexpr int kMostMicroBatches = 1'000'000;
// The most that a plan may let devices go ahead; a plan with more is taken for a mistake.
inline constexpr int kMostStepsAhead = 255;

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
  // How many steps a device may begin before all devices have ended the oldest one under way:
  // decoupled updates (Pipe-BD; Jang et al. 2023). 0: all wait for each other after each step. See
  // planner/plan/step_window.h.
  int steps_ahead = 0;
  Provenance provenance;

  int micro_batches() const { return divide_up(batch_size, micro_batch_size); }
  friend bool operator==(const Plan&, const Plan&) = default;
};

// True if each stage holds one range of layers, which begins where that of the stage before ends:
// the first layers of the stages then tell which layers each holds.
bool is_consecutive(const Pipeline& pipeline);
// Returns "2-5", or "0-1+4-5" of a stage with several ranges of layers.
std::string layers_text(const Stage& stage);

// True if some stage of the pipeline lies on several devices.
bool has_shared_stage(const Pipeline& pipeline);

// Returns the device of a stage that works on a micro-batch. The devices of the stage take the
// micro-batches of the pipeline in turn (PipeDream's 1F1B-RR; Narayanan et al. 2019); with axis
// samples device k works on slice k of every micro-batch. Requires: the pipeline owns the
// micro-batch; `slice` is given if and only if the stage has slices.
DeviceId device_of(const Pipeline& pipeline, StageId stage, MicroBatchId micro_batch,
                   std::optional<std::int32_t> slice = std::nullopt);

// Returns the micro-batches that one device of a stage works on, or has a slice of, as ascending,
// disjoint closed intervals. Returns none for a device that is not of the stage.
std::vector<MicroBatches> micro_batches_on(const Pipeline& pipeline, StageId stage,
                                           DeviceId device);

// Returns how many of the pipeline's micro-batches come before this one. Requires: the pipeline
// owns the micro-batch.
int turn_of(const Pipeline& pipeline, MicroBatchId micro_batch);

// Returns the samples in one global micro-batch of a step over `batch_size` samples:
// micro_batch_size, or fewer in the last micro-batch.
int samples_in(const Plan& plan, MicroBatchId micro_batch);

std::string_view policy_name(DispatchPolicy policy);  // "fifo", "priority", "lrtf", "steal"
std::optional<DispatchPolicy> find_policy(std::string_view name);

// How the provenance of a searched order begins (key "schedule").
inline constexpr std::string_view kSearched = "searched for the least ";
// True if the provenance says that the lists of the plan come from a search over orders of work.
bool has_searched_order(const Plan& plan);

// Returns one line for people: "2 stages x 1 pipeline, 1f1b, 4 micro-batches of 8, cut 7".
std::string summarize(const Plan& plan);

// Makes one pipeline of consecutive stages: layer cuts[i] begins stage i + 1, and stage i lies on
// devices[i].
Pipeline make_pipeline(int layers, const std::vector<LayerId>& cuts,
                       const std::vector<DeviceId>& devices, MicroBatches micro_batches);

}  // namespace frazil
