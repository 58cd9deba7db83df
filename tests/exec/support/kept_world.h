#pragma once
// A run over processes that is begun once and runs case after case: before each it has its start
// values again.

#include <vector>

#include "tests/exec/support/process_run.h"
#include "tests/exec/support/schedule_cases.h"

namespace frazil {

class KeptWorld {
 public:
  KeptWorld(const TrainedVit& vit, const ProcessShape& shape, const RunOptions& options = {})
      : vit_(vit), run_(make_vit(vit.model), vit.optimizer, 7, shape, options) {
    for (const LayerState& state : run_.gather_states()) start_.push_back(clone(state));
  }

  ProcessRun& begin() {
    std::vector<LayerState> start;
    for (const LayerState& state : start_) start.push_back(clone(state));
    run_.restore(std::move(start));
    return run_;
  }
  std::uint64_t hash(const Plan& plan, int micro_batches) {
    return train_two_steps(begin(), vit_, plan, micro_batches);
  }
  const TrainedVit& vit() const { return vit_; }

 private:
  TrainedVit vit_;
  ProcessRun run_;
  std::vector<LayerState> start_;
};

}  // namespace frazil
