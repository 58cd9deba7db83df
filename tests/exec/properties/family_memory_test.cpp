// Measured memory is compared with the simulated, for every schedule of the menu.

#include <gtest/gtest.h>

#include <map>

#include "tests/exec/models/model_plans.h"
#include "tests/exec/support/family_plans.h"
#include "tests/exec/support/measured_memories.h"

namespace frazil {
namespace {

// The cases have two devices and four, nothing frozen, a frozen prefix and frozen layers in
// between; half of the cases have AdamW's moments, half SGD's.
struct Case {
  int devices = 2;
  int micro_batches = 8;
  const char* mask = "11111";
  OptimizerConfig optimizer = {};
};

std::vector<Case> make_cases() {
  return {{2, 6, "11111", {}},
          {2, 8, "10101", momentum_sgd()},
          {4, 8, "11111", momentum_sgd()},
          {4, 8, "00111", {}}};
}

TEST(FamilyMemory, EqualsTheSimulatedOfEverySchedule) {
  const ModelSpec model = make_vit(small_config());
  std::map<ScheduleKind, int> compared;
  for (const auto& [devices, micro_batches, mask, optimizer] : make_cases()) {
    const ModelProfile profile =
        make_measured_profile(model, optimizer, small_micro_batches(0, 1).front());
    for (const ScheduleFacts& facts : all_schedules()) {
      const FamilyForm form{facts.kind, devices, chunks_of(facts).front(), micro_batches, mask};
      SCOPED_TRACE(name_of(form));
      expect_equal(measure_memories(
          model, optimizer, profile, place_family(form, profile), devices,
          {small_micro_batches(0, micro_batches), small_micro_batches(1, micro_batches)}));
      ++compared[facts.kind];
    }
  }
  EXPECT_EQ(compared.size(), all_schedules().size()) << "all that the menu lists";
  for (const auto& [kind, times] : compared) EXPECT_EQ(times, 4) << schedule_name(kind);
}

}  // namespace
}  // namespace frazil
