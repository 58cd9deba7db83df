#pragma once
// The freeze policies, which decide which blocks train, as plain configurations: a closed set. How
// each decides is in planner/freezing/freeze_schedule.h (policies that read the step alone) and
// planner/freezing/measured_freeze.h (policies that read signals).
// A model has n blocks, without those at its end in which nothing trains
// (planner/freezing/run_shape.h): block 0 is the embedding, blocks 1..L with L = n - 2 are the
// layers, and the last is the head, which freezes only where a given or recorded mask says so. "k
// layers are frozen" means, as in PipeTransformer, blocks 0..k for k >= 1 and no block for k = 0.
// Most policies decide at `start` and every `interval` thereafter, both counted in `unit`.

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "profiles/units.h"
#include "traces/freeze_mask.h"

namespace frazil {

enum class PaceUnit { kSteps, kEpochs };

struct NoFreeze {
  friend bool operator==(const NoFreeze&, const NoFreeze&) = default;
};

// Keeps one mask throughout: `mask` if given, else the one with `frozen_layers` layers frozen.
struct StaticFreeze {
  int frozen_layers = 0;
  std::optional<FreezeMask> mask = std::nullopt;
  friend bool operator==(const StaticFreeze&, const StaticFreeze&) = default;
};

// PipeTransformer's schedule with its bound always active (He et al. 2021, eq. 1; released code):
// L_f(T) = ceil(L (1 - (1 - alpha)^T)), T = 0 before `start`, then
// 1 + floor((step - start) / interval). alpha in (0, 1).
struct AlphaFreeze {
  double alpha = 1.0 / 3.0;
  Step start = 0;
  Step interval = 1;
  PaceUnit unit = PaceUnit::kSteps;
  friend bool operator==(const AlphaFreeze&, const AlphaFreeze&) = default;
};

// PipeTransformer's equation 1 as published: the smaller of AlphaFreeze's bound and the index of
// the block with the smallest gradient norm. T = floor((step - start) / interval): an interval is
// judged when it is over.
struct PaperFreeze {
  double alpha = 1.0 / 3.0;
  Step start = 0;
  Step interval = 1;
  PaceUnit unit = PaceUnit::kSteps;
  friend bool operator==(const PaperFreeze&, const PaperFreeze&) = default;
};

// AutoFreeze (Liu et al. 2021) freezes the layers before the first whose gradient, summed over an
// interval, changes by at least the `percentile` of the changes of all active layers. percentile in
// (0, 100].
struct AutoFreeze {
  double percentile = 50;
  Step start = 0;
  Step interval = 1;
  PaceUnit unit = PaceUnit::kSteps;
  friend bool operator==(const AutoFreeze&, const AutoFreeze&) = default;
};

// The layer freezing of MosaicML's Composer: the frozen share of the blocks below the head grows
// linearly from 0, at the share `freeze_start` of the run, to `freeze_level` at the end of the run.
struct LinearFreeze {
  double freeze_start = 0.5;  // [0, 1)
  double freeze_level = 1;    // (0, 1]
  Step interval = 1;
  PaceUnit unit = PaceUnit::kEpochs;
  friend bool operator==(const LinearFreeze&, const LinearFreeze&) = default;
};

// FreezeOut (Brock et al. 2017): block i of n is frozen after the share
// t_i = (t0 + (1 - t0) i / (n - 1))^power of the run, for which its own learning rate is annealed.
struct FreezeOut {
  double t0 = 0.8;     // [0, 1]
  int power = 3;       // 1, 2, 3
  bool scaled = true;  // the rate is multiplied by 1 / t_i to make up for the shorter time
  friend bool operator==(const FreezeOut&, const FreezeOut&) = default;
};

// Frazil's own policy, close to Egeria's (Wang et al., EuroSys 2023): front first, a layer freezes
// once the moving average of its plasticity (planner/freezing/plasticity.h) has been at most
// `tolerance` x the largest value of that average for `patience` decisions in a row.
struct PlasticityFreeze {
  double tolerance = 0.1;  // (0, 1)
  int patience = 1;        // >= 1
  double smoothing = 1;    // (0, 1]: weight of the newest reading
  // Divides plasticity by the square of the learning rate, with which it falls whatever the weights
  // do.
  bool per_rate = false;
  // [0, 1): all layers thaw when the learning rate is at most this share of the rate at the first
  // freezing; 0: never.
  double thaw_at_rate = 0;
  Step start = 0;
  Step interval = 1;
  PaceUnit unit = PaceUnit::kSteps;
  friend bool operator==(const PlasticityFreeze&, const PlasticityFreeze&) = default;
};

// Gradual unfreezing (ULMFiT, Howard and Ruder 2018): the head alone trains in the first interval;
// every further interval trains `blocks_per_interval` more blocks from the top.
struct GradualUnfreeze {
  int blocks_per_interval = 1;
  Step start = 0;
  Step interval = 1;
  PaceUnit unit = PaceUnit::kEpochs;
  friend bool operator==(const GradualUnfreeze&, const GradualUnfreeze&) = default;
};

// Trains `active_layers` of the L layers, drawn anew every interval from the run's seed; before
// `start` all blocks train (after LISA, Pan et al. 2024, which keeps embedding and head active).
struct RandomFreeze {
  int active_layers = 2;
  bool embedding_active = true;
  Step start = 0;
  Step interval = 1;
  PaceUnit unit = PaceUnit::kSteps;
  friend bool operator==(const RandomFreeze&, const RandomFreeze&) = default;
};

struct TracedMask {
  Step step = 0;
  FreezeMask mask;
  friend bool operator==(const TracedMask&, const TracedMask&) = default;
};

// Replays the masks of a recorded run, and the learning rates of its blocks.
struct TraceFreeze {
  std::string path = {};  // as the configuration names it
  bool rescale = false;   // maps steps by their share of the run, for a run of another length
  Step steps = 1;         // of the recorded run
  std::vector<TracedMask> masks = {};  // steps increase; all blocks are active before the first
  std::optional<FreezeOut> rates = std::nullopt;
  friend bool operator==(const TraceFreeze&, const TraceFreeze&) = default;
};

using FreezePolicy =
    std::variant<NoFreeze, StaticFreeze, AlphaFreeze, PaperFreeze, AutoFreeze, LinearFreeze,
                 FreezeOut, PlasticityFreeze, GradualUnfreeze, RandomFreeze, TraceFreeze>;

std::string_view name_of(const FreezePolicy& policy);  // "pt-paper", its kind in a file

// Returns the policy with its pace converted to steps.
FreezePolicy in_steps(FreezePolicy policy, Step steps_per_epoch);

// Rounding noise up to this much, in a number of layers or blocks, changes no count.
inline constexpr double kRoundingNoise = 1e-9;

// Returns AlphaFreeze's L_f(T) for T = interval_index. Rounding noise below 1e-9 in the power never
// raises the ceiling.
int alpha_frozen_layers(int layers, double alpha, int interval_index);

// Returns the mask with `layers` layers frozen. Requires: 0 <= layers <= L.
FreezeMask freeze_layers(int blocks, int layers);

}  // namespace frazil
