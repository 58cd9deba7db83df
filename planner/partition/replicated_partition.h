#pragma once
// clang-format off
// PipeDream's partition (Narayanan et al., SOSP'19, section 3.1, and its optimizer), solved over
// all ideals of a model's layers: consecutive stages, each copied onto m machines, so that the
// largest time is least. With machines in levels (within a server, between servers) a stage of a
// level is a pipeline of the level below. A stage with compute C, parameters P and m machines of a
// level of bandwidth B takes
//   time = (C + 4 (m-1) P / (m B)) / m
// The weights' share of a level's first stage is divided by the machines of one unit of the level
// below, as in PipeDream's optimizer; C of a higher level is the least time of the level below. The
// activations A that cross the boundary before a stage take 2 A / (m B), and so do those that cross
// the boundary after it if the model goes on; the only or first stage of a pipeline has no such
// times. A is counted as PipeDream's antichains do (planner/partition/boundaries.h). The largest
// time is the largest of all these, rounded up to whole ns. At most the given machines are used:
// more machines never make the result worse.
// clang-format on

#include <vector>

#include "profiles/model_profile.h"

namespace frazil {

struct ReplicaLevel {  // innermost first
  int machines = 1;
  BytesPerSecond bandwidth;
};

struct ReplicaOptions {
  std::vector<ReplicaLevel> levels;
  int micro_batch_size = 0;    // samples; 0: the smallest measured
  bool is_straight = false;    // no stage has copies
  std::size_t ideals = 2'000;  // most that are listed; 500 with several levels
};

struct ReplicatedStage {
  std::vector<LayerId> layers;         // ascending
  int machines = 1;                    // copies, of the level
  Duration time{0};                    // without its transfers
  std::vector<ReplicatedStage> inner;  // its pipeline on the level below; empty on the lowest

  friend bool operator==(const ReplicatedStage&, const ReplicatedStage&) = default;
};

struct ReplicatedPartition {
  std::vector<ReplicatedStage> stages;
  Duration time{0};         // the largest
  Duration lower_bound{0};  // equal to the time: no partition is better
  std::size_t ideals = 0;
};

// Returns the best partition. If a model has more ideals than may be listed, those near one order
// are tried, and the lower bound is an even share of the compute.
ReplicatedPartition partition_replicated(const ModelProfile& profile,
                                         const ReplicaOptions& options);

}  // namespace frazil
