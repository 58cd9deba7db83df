// Every schedule of the menu: measured memory beside the simulated.

#include <gtest/gtest.h>

#include <set>

#include "exec/optimizer.h"
#include "tests/exec/family_plans.h"
#include "tests/exec/measured_memories.h"
#include "tests/exec/models/model_plans.h"

namespace frazil {
namespace {

// Two devices and four, nothing frozen, a frozen prefix and frozen layers in between.
std::vector<FamilyForm> forms_of(const ScheduleFamily& family) {
  const int chunks = chunks_of(family).front();
  return {{family.kind, 2, chunks, 6, "11111"},
          {family.kind, 2, chunks, 8, "10101"},
          {family.kind, 4, chunks, 8, "11111"},
          {family.kind, 4, chunks, 8, "00111"}};
}

// Moments of two sizes: AdamW's and those of SGD with momentum.
TEST(FamilyMemory, EqualsTheSimulatedOfEverySchedule) {
  const ModelSpec model = make_vit(small_config());
  std::set<ScheduleKind> seen;
  for (const OptimizerConfig& optimizer : {OptimizerConfig{}, momentum_sgd()}) {
    const ModelProfile profile =
        make_measured_profile(model, optimizer, small_micro_batches(0, 1).front());
    for (const ScheduleFamily& family : schedule_families()) {
      for (const FamilyForm& form : forms_of(family)) {
        SCOPED_TRACE(name_of(form) +
                     (optimizer.kind == OptimizerConfig::Kind::kSgd ? ", SGD" : ", AdamW"));
        expect_equal(measure_memories(model, optimizer, profile, place_family(form, profile),
                                      form.devices,
                                      {small_micro_batches(0, form.micro_batches),
                                       small_micro_batches(1, form.micro_batches)}));
      }
      seen.insert(family.kind);
    }
  }
  EXPECT_EQ(seen.size(), 22U) << "all that the menu lists";
}

}  // namespace
}  // namespace frazil
