// A plan with an explicit schedule runs the short last batch of an epoch too.

#include <gtest/gtest.h>

#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

TEST(ExplicitSchedule, TakesAShortBatchUnderAnExplicitSchedule) {
  const PlanShape shape{.micro_batches = 2, .owned = {2}};
  std::vector<std::uint64_t> hashes;
  for (const bool given : {false, true}) {
    frazil::Run run(make_vit(small_config()), {}, 7, 1);
    Plan plan = make_small_plan(run.structure(), shape);
    if (given) {
      ExplicitSchedule schedule{.devices = {{}}};
      for (const char* text : {"0F0", "0F1", "0B1", "0B0"}) {
        schedule.devices[0].push_back(parse_action(text));
      }
      plan.schedule = schedule;
    }
    run.transition_to(plan);
    run.step(0, 1e-2, small_micro_batches(0, 1));
    hashes.push_back(run.weight_hash());
  }
  EXPECT_EQ(hashes[1], hashes[0]);
}

}  // namespace
}  // namespace frazil
