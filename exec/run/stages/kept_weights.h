#pragma once
// KeptWeights are the weights that a device keeps beside the newest in a step of a plan with weight
// versions. Weights that micro-batches in flight have read stay with their graphs; with 2bw the
// version before the newest stays for forwards that read it later. All kept weights count as
// parameters until nobody holds them.

#include <map>
#include <utility>
#include <vector>

#include "exec/measuring/memory_account.h"
#include "exec/state/layer_state.h"
#include "planner/plan/plan.h"

namespace frazil {

// The parameters before the last update, by layer.
using OldWeights = std::map<LayerId, Tensors>;

class KeptWeights {
 public:
  // The account must outlive this object.
  KeptWeights(WeightVersions rule, MemoryAccount& memory) : rule_(rule), memory_(memory) {}

  // Must be called before each update of a layer. Weights that somebody else holds stay as they
  // are, and the layer goes on with a copy.
  void keep(LayerId layer, LayerState& state);
  // Returns the version before the newest with 2bw; empty before the first update of a step.
  const OldWeights& before_newest() const { return before_newest_; }
  // Takes weights that nobody holds any more off the account.
  void settle();
  // Ends a step: only the newest weights go on.
  void clear();

 private:
  using Watched = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

  WeightVersions rule_;
  MemoryAccount& memory_;
  OldWeights before_newest_;
  std::vector<std::pair<Watched, std::int64_t>> counted_;  // each with its bytes
};

}  // namespace frazil
