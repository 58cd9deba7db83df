#pragma once
// A small training under every schedule with a flush, and what one device gives: the cases of the
// tests that say that each schedule has the bits of one device, in whatever world.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "exec/state/optimizer.h"
#include "tests/exec/support/family_plans.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {

struct TrainedVit {
  OptimizerConfig optimizer;
  VitConfig model = small_config();
};

// Makes AdamW with dropout and clipping (0), or SGD with momentum (1).
inline constexpr int kTrainedVits = 2;
TrainedVit make_trained_vit(int index);
ModelProfile structure_of(const TrainedVit& vit);

// Returns the forms of every schedule with a flush on so many devices, with every number of chunks.
// Some of them have no plan (place_family() throws InfeasibleError).
std::vector<FamilyForm> list_forms(int devices, const std::vector<int>& micro_batches);
// Returns every frozen prefix of the small model, and every mask with a frozen block behind an
// active one whose head is active.
std::vector<std::string> list_masks();

// Takes two steps, one of the warm-up and one along the cosine, and returns the hash of the
// weights.
template <class AnyRun>
std::uint64_t train_two_steps(AnyRun& run, const TrainedVit& vit, const Plan& plan,
                              int micro_batches) {
  run.transition_to(plan);
  for (const Step step : {0, 3}) {
    run.step(step, learning_rate(vit.optimizer, step, 5), small_micro_batches(step, micro_batches));
  }
  return run.weight_hash();
}

// Remembers what one device gives.
class OneDevice {
 public:
  std::uint64_t hash(int vit, int micro_batches, const std::string& mask);

 private:
  std::map<std::tuple<int, int, std::string>, std::uint64_t> hashes_;
};

}  // namespace frazil
