#pragma once
// The words for what a plan chooses of its schedule: which of the named ones, and the weights that
// a micro-batch reads. What is known of each is in planner/plan/schedule_facts.h.

namespace frazil {

// All schedules, in menu order.
enum class ScheduleKind {
  kGpipe,
  kOneForwardOneBackward,
  kEagerOneForwardOneBackward,
  kInterleaved,
  kLoopedBfs,
  kZbH1,
  kZbH2,
  kZb1p,
  kZb2p,
  kZbV,
  kZbVAuto,
  kVHalf,
  kVMin,
  kInterleavedZb,
  kDualPipe,
  kDualPipeV,
  kChimera,
  kBitPipe,
  kHanayo,
  kTwoBp,
  kPipeDream,
  kPipeDream2Bw,
  kVaruna
};

// Which weights a micro-batch reads if updates fall among backwards: the weights of the step
// (kSync), a copy of its own (kStash, weight stashing of PipeDream), one of two copies
// (kTwoBuffered, PipeDream-2BW), the newest weights (kLatest), or a prediction of them
// (kPredicted). A plan file may say kLatest or kPredicted, but no generator and no executor takes
// them.
enum class WeightVersions { kSync, kStash, kTwoBuffered, kLatest, kPredicted };

}  // namespace frazil
