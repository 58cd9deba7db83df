#include "exec/train/process_changes.h"

#include <utility>

namespace frazil {

ElasticPlan::Transitioned ProcessChanges::recover_under(const FreezeMask& mask, Step step) {
  ElasticPlan::Recovered recovered = plans_.recover(mask, step);
  for (const std::string& sentence : recovered.lost) calls_.tell(step, sentence, true);
  return std::move(recovered.transitioned);
}

ElasticPlan::Transitioned ProcessChanges::transition_to(const FreezeMask& mask, Step step) {
  try {
    return plans_.transition_to(mask, step);
  } catch (const StepUndone&) {
    return recover_under(mask, step);
  }
}

void ProcessChanges::recover(Step step) {
  // The plan in force goes with the devices that it used.
  const FreezeMask mask = run_.plan().mask;
  calls_.change_phase(step, [&] { return recover_under(mask, step); });
}

}  // namespace frazil
