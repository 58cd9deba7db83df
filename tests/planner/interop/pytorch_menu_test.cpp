#include "planner/interop/pytorch_menu.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "profiles/error.h"
#include "tests/planner/interop/pytorch_schedules.h"

namespace frazil {
namespace {

TEST(PytorchMenu, RefusesASchedulePyTorchLacksByItsNameAndListsTheOthers) {
  for (const ScheduleFacts& facts : all_schedules()) {
    SCOPED_TRACE(facts.name);
    EXPECT_EQ(runs_in_pytorch(facts), is_expressible(facts));
    Plan plan;
    plan.schedule = NamedSchedule{facts.kind, std::nullopt, facts.chunks};
    if (is_expressible(facts)) {
      EXPECT_NO_THROW(refuse_foreign_schedule(plan));
      continue;
    }
    try {
      refuse_foreign_schedule(plan);
      ADD_FAILURE();
    } catch (const InfeasibleError& error) {
      const std::string sentence = error.what();
      const std::string begin =
          fmt::format("PyTorch's pipelining has no schedule like {}, for it", facts.name);
      EXPECT_EQ(sentence.find(begin), 0U) << sentence;
      EXPECT_NE(sentence.find("; it has gpipe, 1f1b, eager-1f1b, "), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace frazil
