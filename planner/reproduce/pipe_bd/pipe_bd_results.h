#pragma once
// Simulates Pipe-BD's published results: the speed-ups, the breakdown of an epoch, the schedules
// that it chose, and stages whose times vary.

#include <array>
#include <optional>
#include <vector>

#include "planner/reproduce/pipe_bd/blockwise_methods.h"
#include "planner/reproduce/pipe_bd/open_inputs.h"
#include "planner/reproduce/pipe_bd/pipe_bd_published.h"
#include "planner/reproduce/pipe_bd/varying_stages.h"

namespace frazil {

struct SpeedupResult {
  SpeedupChart published;
  std::array<MethodTime, kBlockwiseMethods.size()> times = {};  // by method
  // The largest error of a row of this chart that is accepted; none where the workload is our own.
  std::optional<double> bar = std::nullopt;
  // The method whose row a constant was fitted on, so that the row proves nothing.
  std::optional<BlockwiseMethod> fitted = std::nullopt;
  std::optional<OpenLoad> open_load = std::nullopt;  // what LS depends on, where that is looked at
  std::vector<int> pipeline_cuts = {};               // of TR and TR+DPU
  HybridPlan distribution = {};                      // of AHD
  OwnHybrid own = {};                                // our plan, of all hybrid plans that fit
};

// The accepted errors of simulated speed-ups.
inline constexpr double kCifarBar = 0.08;
inline constexpr double kImageNetBar = 0.15;

// How students vary, as their paths are sampled: in each of the runs anew.
inline constexpr StudentDraws kPathDraws{.seed = 1, .runs = 50, .amplitude_ppm = 250'000};

// What each of our plans has to fit: the memory of an RTX A6000.
inline constexpr Bytes kPipeBdMemory{48'000'000'000};

struct EpochResult {
  EpochShares published;
  EpochShares simulated;
};

struct ScheduleResult {
  PublishedSchedule published;
  HybridPlan found;    // plan of our ranking with the rank of the published schedule
  Duration period{0};  // simulated time of a step of `found`, with its loaders
  double speedup = 1;  // over data parallelism
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
};

// Simulates all parts; `varying` says with how many runs those whose times vary.
PipeBdResults simulate_pipe_bd(const VaryingOptions& varying = {});

// Simulates the four charts alone.
std::vector<SpeedupResult> simulate_speedups();

}  // namespace frazil
