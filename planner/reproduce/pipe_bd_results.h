#pragma once
// Simulates Pipe-BD's published results: the speed-ups, the breakdown of an epoch, the schedules
// that it chose, and stages whose times vary.

#include <array>
#include <optional>
#include <vector>

#include "planner/reproduce/pipe_bd_published.h"

namespace frazil {

// Time of a step; where students are trained one after another, the sum over the students.
struct StepTimes {
  Duration plain{0};
  Duration varied{0};  // median, with each task's time drawn from +-25 %
};

struct SpeedupResult {
  SpeedupChart published;
  // Indexed by method; none where too little is published to simulate the method.
  std::array<std::optional<StepTimes>, kBlockwiseMethods.size()> steps;
};

struct EpochResult {
  EpochShares published;
  EpochShares simulated;
};

struct ScheduleResult {
  PublishedSchedule published;
  HybridPlan found;    // plan of our ranking with the rank of the published schedule
  Duration period{0};  // simulated time of a step of `found`, with loading
};

// Time of a step with and without a barrier, where the times of stages vary.
struct VaryingResult {
  Duration barrier{0};
  Duration decoupled{0};
};

struct PipeBdResults {
  std::vector<SpeedupResult> speedups;  // in the order of kSpeedups
  EpochResult data_parallel;
  std::vector<EpochResult> ranks;
  std::vector<ScheduleResult> schedules;
  VaryingResult varying;

  // Claims that must hold for the published results to count as reproduced.
  bool schedules_are_exact = false;   // groups, cuts and costs equal the published ones
  bool idle_is_within_tenth = false;  // off by at most a tenth of the period, on every rank
  bool varying_is_published = false;  // barrier and decoupled within 0.1 ms
};

PipeBdResults simulate_pipe_bd();

}  // namespace frazil
