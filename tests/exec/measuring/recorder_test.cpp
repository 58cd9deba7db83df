#include "exec/measuring/recorder.h"

#include <gtest/gtest.h>

#include <variant>

#include "traces/action.h"
#include "traces/timeline_csv.h"

namespace frazil {
namespace {

TEST(Recorder, GivesTheStepToAPairAndToBothItsHalves) {
  Recorder recorder(DeviceId{0}, SteadyTime{});
  recorder.add(make_pair_action(parse_action("1F3"), parse_action("2B1")), 4, Lane::kCompute,
               {recorder.now()});
  const Timeline recorded{1, recorder.take_spans()};
  ASSERT_EQ(recorded.spans.size(), 1U);
  EXPECT_EQ(recorded.spans[0].action.step, 4);
  for (const Action& half : std::get<ActionPair>(recorded.spans[0].action.detail).halves) {
    EXPECT_EQ(half.step, 4) << to_text(half);
  }
  EXPECT_EQ(parse_timeline_csv(to_csv(recorded), "time line"), recorded);
}

}  // namespace
}  // namespace frazil
