#pragma once
// The rules that say which blocks train, as plain configurations: a closed set. How each decides
// stands in freeze_schedule.h (those that read the step alone) and measured_freeze.h (those that
// read signals). n blocks: block 0 is the embedding, 1..L = n - 2 are the layers, the last is the
// head, which never freezes. "k layers are frozen" means, as in PipeTransformer, blocks 0..k for
// k >= 1 and none for k = 0.
// Most rules decide at `start` and every `interval` thereafter, both counted in `unit`.

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

// One mask throughout: the given one, else that of `frozen_layers`.
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

// The same equation as published: the smaller of its bound and the block with the smallest gradient
// norm. T = floor((step - start) / interval): an interval is judged when it is over.
struct PaperFreeze {
  double alpha = 1.0 / 3.0;
  Step start = 0;
  Step interval = 1;
  PaceUnit unit = PaceUnit::kSteps;
  friend bool operator==(const PaperFreeze&, const PaperFreeze&) = default;
};

// AutoFreeze (Liu et al. 2021): the layers before the first whose gradient, summed over an
// interval, still changes as much as the `percentile` of all active layers. percentile in (0, 100].
struct AutoFreeze {
  double percentile = 50;
  Step start = 0;
  Step interval = 1;
  PaceUnit unit = PaceUnit::kSteps;
  friend bool operator==(const AutoFreeze&, const AutoFreeze&) = default;
};

// The layer freezing of MosaicML's Composer: the frozen share of the blocks below the head grows in
// a line from 0, at the share `freeze_start` of the run, to `freeze_level` at its end.
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
  bool scaled = true;  // a rate larger by 1 / t_i makes up for the shorter time
  friend bool operator==(const FreezeOut&, const FreezeOut&) = default;
};

// Frazil's own rule, a cousin of Egeria's: front first, a layer freezes when the moving average of
// its plasticity has been at most `tolerance` of its largest for `patience` decisions.
struct PlasticityFreeze {
  double tolerance = 0.1;  // (0, 1)
  int patience = 1;        // >= 1
  double smoothing = 1;    // (0, 1]: weight of the newest reading
  // Plasticity falls with the square of the learning rate whatever the weights do: divide by it.
  bool per_rate = false;
  double thaw_at_rate = 0;  // [0, 1): all thaw where the rate is that share of what it was at the
                            // first freezing; 0: never
  Step start = 0;
  Step interval = 1;
  PaceUnit unit = PaceUnit::kSteps;
  friend bool operator==(const PlasticityFreeze&, const PlasticityFreeze&) = default;
};

// Gradual unfreezing (ULMFiT, Howard and Ruder 2018): the head alone trains, then with every
// interval `blocks_per_interval` more from the top.
struct GradualUnfreeze {
  int blocks_per_interval = 1;
  Step start = 0;
  Step interval = 1;
  PaceUnit unit = PaceUnit::kEpochs;
  friend bool operator==(const GradualUnfreeze&, const GradualUnfreeze&) = default;
};

// `active_layers` of the L, drawn anew every interval from the seed (LISA, Pan et al. 2024, keeps
// embedding and head active always).
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

// The masks of a recorded run, and its blocks' learning rates. `rescale`: a run of other length is
// at the same share of its way.
struct TraceFreeze {
  std::string path = {};  // as the configuration names it
  bool rescale = false;
  Step steps = 1;                      // of the recorded run
  std::vector<TracedMask> masks = {};  // steps increase; all blocks are active before the first
  std::optional<FreezeOut> rates = std::nullopt;
  friend bool operator==(const TraceFreeze&, const TraceFreeze&) = default;
};

using FreezePolicy =
    std::variant<NoFreeze, StaticFreeze, AlphaFreeze, PaperFreeze, AutoFreeze, LinearFreeze,
                 FreezeOut, PlasticityFreeze, GradualUnfreeze, RandomFreeze, TraceFreeze>;

std::string_view name_of(const FreezePolicy& policy);  // "pt-paper", its kind in a file

// The policy with its pace in steps.
FreezePolicy in_steps(FreezePolicy policy, Step steps_per_epoch);

// L_f(T). Rounding noise of the power below 1e-9 never pushes the ceiling up.
int alpha_frozen_layers(int layers, double alpha, int interval_index);
// The recursion of eq. 1 with the bound active, unrounded: L_f(T) = L_f(T-1) + alpha (L -
// L_f(T-1)).
double alpha_bound(int layers, double alpha, int interval_index);

// k layers frozen, 0 <= k <= L.
FreezeMask freeze_layers(int blocks, int layers);

}  // namespace frazil
