#pragma once
// The regression check asks whether a plan still runs as its costs say. Blocks of profile steps,
// which time layers inside the plan's own steps, and of run steps come in turn; each block predicts
// its run steps from its profile steps. The answer is the ratio predicted / measured of the step
// and of every layer, with an interval over the blocks. Blocks in which other programs kept the
// machine busy are dropped, whatever they show, and counted; where it is clear that too few will
// count, the check stops.

#include <functional>
#include <string>
#include <vector>

#include "analysis/foreign_cores.h"
#include "analysis/guard/baseline.h"
#include "analysis/verification.h"
#include "exec/config/run_config.h"
#include "exec/data/dataset.h"
#include "exec/devices/compute_device.h"
#include "exec/run/run.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"

namespace frazil {

struct VerifyOptions {
  RunConfig config;
  Cluster cluster;
  Plan plan;
  std::string plan_file;         // for refusals
  DeviceChoice processors = {};  // cores or GPUs
  // Makes the processes over which the plan runs; none: all devices are in this one. Then the
  // configuration's micro-batch size is that of the plan.
  std::function<RunWorld()> world = {};
  int blocks = 40;
  int steps = 8;                                  // per half of a block
  double bar = 0.1;                               // largest accepted deviation
  double most_foreign_cores = kMostForeignCores;  // a block with more foreign load is dropped
  bool accepts_load = false;                      // no block is dropped
  std::uint64_t seed = 1;
  std::string model_check = {};  // how the model file was checked, if there is one
  bool probes_link = false;      // also between blocks: the link between the first two devices
  // Self-test: this layer runs slower by `slow_percent` in the run halves. -1: none.
  int slow_layer = -1;
  int slow_percent = 0;
};

struct Verification {
  std::vector<VerifiedRatio> ratios;  // the step first, then the layers
  Duration predicted_step{0};         // means over the blocks
  Duration measured_step{0};
  int measured_blocks = 0;  // fewer than planned if the check stopped early
  int dropped_blocks = 0;
  // Means of the cores that other programs kept busy, in dropped blocks and in those that count.
  double dropped_foreign_cores = 0;
  double counted_foreign_cores = 0;
  // What a guard compares with another day: the steps of the run halves, their layers, the link if
  // it was probed, and the step over its prediction. One value per block that was kept; of the link
  // one per probe.
  std::vector<GuardedSeries> series;
  // analysis/verification.h says how the ratios decide.
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;  // of INCONCLUSIVE, in a clause; else ""
};

// Returns "34 of 40 blocks were dropped, for other programs kept 0.93 cores busy", what was left
// out if the check stopped, and the flag that drops none; or "" if none was dropped.
std::string tell_dropped(const Verification& verification, int blocks);

// True if too few blocks can still count: `needed` of all are out of reach, or of the first quarter
// (ten at least) none counts. False where all blocks would have been too few.
bool is_hopeless(int blocks, int needed, int measured, int dropped);

// Runs the check. Calls `progress(done, blocks)` after each block. Throws InfeasibleError before
// the first block if the executor or the simulator refuses the plan, or if a device has too little
// memory for it, as the simulator counts with the stashes measured here.
Verification verify(const VerifyOptions& options, const Dataset& data,
                    const std::function<void(int, int)>& progress = {});

}  // namespace frazil
