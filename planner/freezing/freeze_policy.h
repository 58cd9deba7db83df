#pragma once
// When blocks freeze: a pure function of the step (later: of reduced signals), decided once, the
// same for everyone.

#include <string>
#include <string_view>
#include <variant>

#include "profiles/units.h"
#include "traces/freeze_mask.h"

namespace frazil {

struct NoFreeze {
  friend bool operator==(const NoFreeze&, const NoFreeze&) = default;
};

// PipeTransformer's schedule with its bound always active (He et al. 2021, eq. 1; released code):
// L_f(T) = ceil(L (1 - (1 - alpha)^T)), L = transformer blocks (all blocks but embedding and head),
// T = 0 before `start`, then 1 + floor((step - start) / interval). L_f = k >= 1 freezes blocks
// 0..k. alpha in (0, 1).
struct AlphaFreeze {
  double alpha = 1.0 / 3.0;
  Step start = 0;
  Step interval = 1;
  friend bool operator==(const AlphaFreeze&, const AlphaFreeze&) = default;
};

using FreezePolicy = std::variant<NoFreeze, AlphaFreeze>;

// L_f(T). Rounding noise of the power below 1e-9 never pushes the ceiling up.
int alpha_frozen_layers(int layers, double alpha, int interval_index);
// The recursion of eq. 1 with the bound active, unrounded: L_f(T) = L_f(T-1) + alpha (L -
// L_f(T-1)).
double alpha_bound(int layers, double alpha, int interval_index);

FreezeMask decide_mask(const FreezePolicy& policy, Step step, int blocks);

}  // namespace frazil
