#pragma once
// A plan of one pipeline whose stages lie on the first devices of a cluster, one or several each,
// which take the micro-batches in turn. It is numbers alone, cheap to compare and to change.

#include <compare>
#include <optional>
#include <span>
#include <vector>

#include "planner/bounds/search_options.h"
#include "planner/partition/replicated_partition.h"
#include "planner/search/shared_cuts.h"
#include "profiles/setting.h"

namespace frazil {

struct SharedPlan {
  SharedCuts layout;
  int micro_batch_size = 1;
  bool recompute = false;  // in all stages
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  std::optional<int> in_flight = std::nullopt;  // none: the schedule's own

  friend auto operator<=>(const SharedPlan&, const SharedPlan&) = default;
};

// Returns the layers of a stage, of a model of so many layers.
LayerSpan span_of(const SharedCuts& layout, std::size_t stage, int layers);
int count_devices(const SharedCuts& layout);
// True if some stage lies on several devices.
bool has_shared_stage(const SharedCuts& layout);

// Makes the plan; only its model's hash is left empty.
Plan make_plan(const SharedPlan& shared, const SearchOptions& options, int layers);
// Reads a plan of one pipeline; none if its stages are not consecutive layers on consecutive
// devices from the first ones on.
std::optional<SharedPlan> read_shared_plan(const Plan& plan, const SearchOptions& options,
                                           int layers);

// What a changed plan may have.
struct SharedLimits {
  std::span<const ScheduleKind> schedules;
  int layers = 1;       // of the model
  int devices = 1;      // in all
  int most_copies = 1;  // devices of a stage
};

// Returns the plans that differ by another schedule, by a device that goes to another stage, comes
// from the idle ones or goes to them, by a cut that is moved by one or three layers, or by one or
// two micro-batches in flight, as far as some stage lies on several devices.
std::vector<SharedPlan> list_neighbours(const SharedPlan& plan, const SharedLimits& limits);

struct PartitionQuestion {
  int micro_batch_size = 1;
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  std::vector<ReplicaLevel> levels;  // of all devices: one, or those of the cluster
};

// Makes the plan of PipeDream's partition (planner/partition/replicated_partition.h), whose stages
// need not be consecutive layers. Models that branch are cut along their order of layers.
Plan make_partition_plan(Setting setting, const SearchOptions& options,
                         const PartitionQuestion& question);

}  // namespace frazil
