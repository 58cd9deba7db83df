#pragma once
// GradientWatch looks for gradients that are not finite, on one device, step by step. It only reads
// them, so no bit depends on it. On the host a look costs one pass over memory that the optimizer
// is about to read anyway. On a GPU the largest magnitudes are computed there, and all of a step's
// are fetched at once when the step is over; by the step itself where the host runs ahead.

#include <optional>
#include <utility>
#include <vector>

#include "exec/run/unread_numbers.h"
#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

class GradientWatch {
 public:
  void begin();  // a step
  // Looks at the complete gradients of a layer, or adds what the look needs to `unread`, which must
  // deliver it before the next begin().
  void look(LayerId layer, const Tensors& gradients, UnreadNumbers* unread = nullptr);
  // Ends the step: waits for what was computed on a GPU.
  void settle();
  // Returns the last layer, in the order of the model, whose gradient in this step is not finite.
  // What goes wrong in a layer spreads to those before it, so this is the layer nearest the cause.
  std::optional<LayerId> non_finite() const { return non_finite_; }

 private:
  void note(LayerId layer);

  std::optional<LayerId> non_finite_;
  std::vector<std::pair<LayerId, at::Tensor>> magnitudes_;  // on a GPU, until the step is over
};

}  // namespace frazil
