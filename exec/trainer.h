#pragma once
// The training loop: at each step boundary the freeze policy decides, the planner answers with the
// kept or a new plan, state moves in memory, new executors start. Records what was predicted and
// what happened, side by side.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/memory_record.h"
#include "exec/cache/cache_report.h"
#include "exec/checkpoint/durable_run.h"
#include "exec/compute_device.h"
#include "exec/dataset.h"
#include "exec/run_config.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"
#include "traces/freeze_trace.h"
#include "traces/timeline.h"

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
  // Where given, each event is written there as it happens (exec/event_log.h).
  std::filesystem::path event_log = {};
  // Where given, told of each phase of a durable run when it begins and when it ends, by its number
  // in the whole run. An InputError of it ends no run.
  std::function<void(const TrainPhase&, std::size_t number)> keep_phase = {};
  FileSystem cache_files = real_file_system();
};

// A stretch of steps under one plan.
struct TrainPhase {
  Step first_step = 0;
  Plan plan;
  Timeline predicted;  // one step
  Duration predicted_step{0};
  bool extrapolated = false;  // the prediction goes beyond the measured micro-batch sizes
  Timeline measured;          // sampled steps
  std::int64_t steps = 0;     // full batches
  Duration measured_time{0};  // of them, gathering of samples included
  // Of the second step that is full, measured besides its time; none of a shorter phase.
  std::optional<MemoryRecord> memory;

  double predicted_samples_per_second() const;
  double measured_samples_per_second() const;  // 0 when no full batch ran
};

struct TrainResult {
  FreezeTrace trace;
  std::vector<TrainPhase> phases;
  double loss = 0;  // on the test part, after the last step
  double accuracy = 0;
  std::optional<Validation> validation;  // likewise, where there are samples to validate with
  Duration training_time{0};             // steps, re-planning and moving; not evaluation
  std::uint64_t weight_hash = 0;
  Bytes process_peak_resident;          // from the start of the process
  std::optional<double> foreign_cores;  // kept busy by other programs meanwhile
  std::optional<CacheReport> cache;     // where the run has one
  // Of this process, whose phases these are. The trace is that of the whole run, as far as its log
  // has the steps before; of them it has the masks alone otherwise.
  Step first_step = 0;
  std::size_t first_phase = 0;     // how many the trace has before
  std::optional<Step> stopped_at;  // done when it was asked to stop; evaluated if its epoch is over
};

// What to tell a person while it runs.
struct TrainProgress {
  Step step = 0;
  Step steps = 0;
  int epoch = 0;
  double loss = 0;                 // of the last step
  std::optional<double> accuracy;  // of the last evaluation
  std::optional<Validation> validation = {};
  std::string event;        // "blocks 0-2 frozen: 1 stage x 2 pipelines, ..." or empty
  bool is_warning = false;  // the event is of something that went wrong
};

// Requires: samples to validate with where a validation guard decides.
// Throws InfeasibleError when no plan fits, or the given one does not, before the first step;
// PeerLost when a device fails. Of a durable run: InputError where the journal cannot be written or
// a checkpoint that was asked for by `stop`; ReplayMismatch. One that fails in between is told of.
TrainResult train(const TrainOptions& options, const Dataset& data,
                  const std::function<void(const TrainProgress&)>& progress = {});

}  // namespace frazil
