#pragma once
// Pipe-BD's published results, simulated: the speed-ups, the breakdown of an epoch, the schedules
// it chose, and stages that vary.

#include <array>
#include <optional>
#include <vector>

#include "planner/reproduce/pipe_bd_published.h"

namespace frazil {

// Time of a step: the sum over students where they are trained one after another.
struct StepTimes {
  Duration plain{0};
  Duration varied{0};  // median, with each task's time drawn from +-25 %
};

// A task and its data, by method; none where too little is published to simulate it.
struct SpeedupResult {
  SpeedupChart published;
  std::array<std::optional<StepTimes>, kBlockwiseMethods.size()> steps;
};

struct EpochResult {
  EpochShares published;
  EpochShares simulated;
};

struct ScheduleResult {
  PublishedSchedule published;
  HybridPlan found;    // of the same rank
  Duration period{0};  // of the found one, simulated, with loading
};

struct VaryingResult {
  Duration barrier{0};
  Duration decoupled{0};
};

struct PipeBdResults {
  std::vector<SpeedupResult> speedups;  // in the order published
  EpochResult data_parallel;
  std::vector<EpochResult> ranks;
  std::vector<ScheduleResult> schedules;
  VaryingResult varying;

  // What must hold of it.
  bool schedules_are_exact = false;   // groups, cuts and costs
  bool order_is_published = false;    // TR < TR+DPU < AHD of NAS on ImageNet, varied
  bool idle_is_within_tenth = false;  // of the period, on every rank
  bool varying_is_published = false;  // both within 0.1 ms
};

PipeBdResults simulate_pipe_bd();

}  // namespace frazil
