#pragma once
// TrainOptions are what a training run is asked to do.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/checkpoint/durable_run.h"
#include "exec/config/run_config.h"
#include "exec/devices/compute_device.h"
#include "exec/disk/file_system.h"
#include "exec/measuring/recorder.h"
#include "exec/run/run.h"
#include "exec/state/layer_state.h"
#include "planner/drift/step_costs.h"
#include "planner/named/run_plan.h"
#include "planner/plan/plan.h"
#include "planner/transitions/transition_cost.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct TrainPhase;

// What tests plant to have costs drift; a run of a user has none.
struct PlantedDrift {
  // May slow a device down in a step (Measurement::slow_device).
  std::function<void(Step, Measurement&)> slow = {};
  // Returns what the devices are taken to have needed in a step, in place of what was measured.
  std::function<StepCosts(Step, const StepCosts& predicted, const StepCosts& measured)> costs = {};
  // In place of the measured load by other programs, in cores.
  std::optional<double> foreign_cores = std::nullopt;
};

struct TrainOptions {
  RunConfig config;
  ModelProfile profile;
  Cluster cluster;
  // Held from the first step on; none: the planner's best plan is. An elastic run may leave it at a
  // later mask.
  std::optional<Plan> plan;
  std::string plan_file = {};  // for refusals
  // Which schedules the planner may choose from, at the beginning and later; empty: all that are
  // synchronous.
  std::vector<ScheduleKind> schedules = {};
  // The most pipelines, and the most devices of a stage, of any plan that the planner is asked for;
  // 0: as many as fit.
  int max_replicas = 0;
  // Whose plans the run goes on with under each mask, whatever transitions cost; none: ours, as
  // RunConfig::replan says. Requires: leads_runs(planner).
  std::optional<NamedPlanner> planner = std::nullopt;
  // True: change the plan when masks change, as RunConfig::replan says. False: keep the plan under
  // new masks.
  bool elastic = true;
  // What a transition costs besides moving state; none: what the run measures when it begins.
  std::optional<TransitionOverhead> overhead = std::nullopt;
  std::int64_t max_steps = 0;    // 0: all epochs; never more than these
  DeviceChoice processors = {};  // cores or GPUs
  // Over so many processes the devices are spread; the run may begin with fewer of them, and others
  // may come. 0: as many as it begins with.
  int places = 0;
  bool processes_may_come = false;  // to places that are vacant
  // Makes the processes of the run; none: all devices are in this one.
  std::function<RunWorld()> world = {};
  // Members that are dismissed with kJoinAgain (exec/control/control_message.h) do so.
  bool members_join_again = false;
  std::string command;
  // How the model file was checked, for the provenance; empty: the model is no file.
  std::string model_check = {};
  // If given, the run is journaled and checkpointed, and may go on from where it ended.
  std::optional<DurableOptions> durable = std::nullopt;
  // Given if the run was given more steps after it had ended. `max_steps` is then its length,
  // whatever the epochs. The run goes on where it had ended, and nowhere before: the learning rate
  // of the steps before belongs to the shorter run.
  struct Extension {
    Step begun_with = 0;  // the length with which the run began, which is part of its identity
    Step ended_at = 0;    // its length before this one
  };
  std::optional<Extension> extension = std::nullopt;
  // Is asked after each step except the last: true ends the run, if it is durable after a
  // checkpoint.
  std::function<bool()> stop = {};
  // Is called when all inputs are looked at and the first plan is in force, before anything of the
  // run is written. It is not called if no step is left to do.
  std::function<void()> begin = {};
  // Is given the model, the state of each layer and the number of steps behind it when the run
  // ends, also where `stop` has ended it. The files of the model need not be there any more.
  std::function<void(const ModelSpec& model, const std::vector<LayerState>& layers, Step done)>
      keep_weights = {};
  // If given, each event is written there as it happens (exec/train/event_log.h).
  std::filesystem::path event_log = {};
  // If given, is told of each phase of a durable run when the phase begins and when it ends, by its
  // number in the whole run. An InputError that it throws ends no run.
  std::function<void(const TrainPhase&, std::size_t number)> keep_phase = {};
  FileSystem cache_files = real_file_system();
  PlantedDrift planted = {};
};

}  // namespace frazil
