#pragma once
// What a training run is asked to do.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "exec/checkpoint/durable_run.h"
#include "exec/config/run_config.h"
#include "exec/devices/compute_device.h"
#include "exec/disk/file_system.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct TrainPhase;

struct TrainOptions {
  RunConfig config;
  ModelProfile profile;
  Cluster cluster;
  // Held from the first step on; none: the planner's best. A re-plan may leave it when `elastic`.
  std::optional<Plan> plan;
  std::string plan_file = {};  // for refusals
  bool elastic = true;  // re-plan whenever the mask changes; else keep the plan under new masks
  std::int64_t max_steps = 0;    // 0: all epochs
  DeviceChoice processors = {};  // what the devices of the cluster are here
  std::string command;
  // Where given, the run is journaled and checkpointed, and may go on from where it ended.
  std::optional<DurableOptions> durable = std::nullopt;
  // Asked after each step but the last of a durable run: true ends it, after a checkpoint.
  std::function<bool()> stop = {};
  // Where given, each event is written there as it happens (exec/train/event_log.h).
  std::filesystem::path event_log = {};
  // Where given, told of each phase of a durable run when it begins and when it ends, by its number
  // in the whole run. An InputError of it ends no run.
  std::function<void(const TrainPhase&, std::size_t number)> keep_phase = {};
  FileSystem cache_files = real_file_system();
};

}  // namespace frazil
