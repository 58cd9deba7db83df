#include "exec/train/plans/preparation.h"

#include <exception>

namespace frazil {

void Preparation::expect(const std::optional<FreezeMask>& mask) {
  if (mask == mask_) return;
  mask_ = mask;
  is_reserved_ = false;
  if (mask_) replanner_.expect(*mask_);
}

void Preparation::go_on() {
  if (!mask_ || is_reserved_) return;
  replanner_.expect(*mask_);
  const std::optional<Plan> plan = replanner_.find_expected(*mask_);
  if (!plan) return;
  is_reserved_ = true;
  // The blocks are read here, because the states are the devices' while a step runs.
  jobs_.start([memory = run_.state_memory(), blocks = run_.copied_blocks(*plan)] {
    try {
      memory.reserve(blocks);
    } catch (const std::exception&) {
      // The transition does itself what could not be prepared, or fails then.
    }
  });
}

void Preparation::end() {
  jobs_.wait();
  mask_.reset();
}

}  // namespace frazil
