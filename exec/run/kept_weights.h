#pragma once
// The weights that a device keeps beside the newest in a step, where weights have versions: what
// micro-batches in flight have read stays with their graphs, and with 2bw the version before the
// newest stays for who reads it next. All that is kept counts as parameters, until nobody holds it.

#include <map>
#include <utility>
#include <vector>

#include "exec/measuring/memory_account.h"
#include "exec/state/layer_state.h"
#include "planner/plan/plan.h"

namespace frazil {

// Parameters before the last update, by layer.
using OldWeights = std::map<LayerId, Tensors>;

class KeptWeights {
 public:
  // The account must outlive it.
  KeptWeights(WeightVersions rule, MemoryAccount& memory) : rule_(rule), memory_(memory) {}

  // To be called before each update of a layer: what somebody else holds stays as it is, and the
  // layer goes on with a copy.
  void keep(LayerId layer, LayerState& state);
  // With 2bw; empty before the first update of a step.
  const OldWeights& before_newest() const { return before_newest_; }
  // Takes off the account what nobody holds any more.
  void settle();
  // Ends a step: the newest alone goes on.
  void clear();

 private:
  using Watched = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

  WeightVersions rule_;
  MemoryAccount& memory_;
  OldWeights before_newest_;
  std::vector<std::pair<Watched, std::int64_t>> counted_;  // with its bytes
};

}  // namespace frazil
