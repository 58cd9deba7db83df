#pragma once
// Training as one task graph: steps of plans follow each other on the same lanes, and the batches
// come from loaders. Nothing but the lanes ties a step to the step before, so a device begins the
// next step as soon as its own update is done (decoupled update), unless the step has a barrier.
//
// Loading and decoding are host work. Every device of a plan's first stage has a loader, which
// loads that device's share of each batch, one batch after another. The loaders of a host draw on
// one pool of workers at max-min fair rates (sim/fair_shares.h). A loader that may have a number of
// batches ready begins a batch as soon as the device has ended the step that many steps before; a
// loader that works for one batch at a time begins when the device asks. Memory is left out.

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "planner/reproduce/pipe_bd/pipe_bd_workloads.h"
#include "sim/event_engine.h"

namespace frazil {

// The tasks of one step of a plan and their times.
struct PricedStep {
  struct Cost {
    Duration time{0};
    std::vector<Duration> drawn;  // the parts of `time` that vary from step to step: students
  };

  TaskGraph graph;
  std::vector<Cost> costs;         // by TaskId
  std::vector<DeviceId> load_for;  // the devices of the first stage, which share each batch
};

// Lowers one step of a plan, with or without a barrier before its updates. Requires: delays on
// dependencies take no time.
PricedStep price_step(const Workload& workload, bool barrier);

// Runs in which each student's time is multiplied by a factor drawn evenly from 1 - a to 1 + a.
// Equal seeds give equal draws on every machine.
struct StudentDraws {
  std::uint64_t seed = 1;
  int runs = 0;
  std::int64_t amplitude_ppm = 250'000;  // a in millionths
};

class LoadedSteps {
 public:
  explicit LoadedSteps(const Loader& loader);

  // Appends `steps` copies of a step, behind what its devices have to do already. Device d of the
  // step is device `first` + d. Requires: steps >= 1; a step whose devices reduce together is not
  // shifted.
  void append(const PricedStep& step, int steps, DeviceId first = DeviceId{0});

  // Return when the last task has ended: without draws, and in each of the runs.
  Duration find_end() const;
  std::vector<Duration> draw_ends(const StudentDraws& draws) const;
  // Return the time of a step once a pipeline is full: the mean over the second half of the steps,
  // rounded down. Requires: an even number of steps, at least 2, that follow each other.
  Duration find_period() const;
  std::vector<Duration> draw_periods(const StudentDraws& draws) const;
  // Returns how long the device's loader takes for its last batch, beside all other loaders; no
  // time if loading takes none. Requires: the device loads.
  Duration find_load_time(DeviceId device) const;

 private:
  struct DrawnPart {
    WorkId work;
    Duration time;
  };

  void append_once(const PricedStep& step, DeviceId first, std::map<WorkId, WorkId>& collectives);
  std::map<DeviceId, TaskId> append_loads(const PricedStep& step, DeviceId first);
  WorkId add_task_work(const PricedStep& step, TaskId task, std::map<WorkId, WorkId>& collectives);
  WorkId add_work(Work work, Duration price);
  LaneId lane(DeviceId device, Lane kind);
  EventGraph prepare() const;
  // Simulates without draws, and each of the runs; `visit` reads the times.
  void simulate(const std::function<void(const EventTimes&)>& visit) const;
  void simulate(const StudentDraws& draws,
                const std::function<void(const EventTimes&)>& visit) const;
  Duration find_period(const EventTimes& times) const;

  Loader loader_;
  TaskGraph graph_;
  Sharing sharing_;
  std::vector<ResourceId> pool_;  // none if loading takes no time
  std::vector<Duration> prices_;  // by WorkId
  std::vector<DrawnPart> drawn_;
  std::vector<TaskId> step_ends_;  // by step: one past its last task
  std::map<std::pair<DeviceId, Lane>, LaneId> lanes_;
  std::map<DeviceId, LaneId> loader_lanes_;
  std::map<DeviceId, std::vector<TaskId>> last_of_step_;  // of devices with a loader
  std::map<DeviceId, TaskId> last_load_;
};

}  // namespace frazil
