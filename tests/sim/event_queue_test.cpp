#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/sim/random_graph.h"

namespace frazil {
namespace {

// The queue is pushed and popped at random and compared with an ordered map from task to time.
TEST(EventQueue, GivesOutTheEarliestOfAllThatAreIn) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    EventQueue queue;
    std::map<TaskId, std::int64_t> in;
    for (TaskId task = 0; task < 2000; ++task) {
      const std::int64_t time = draw(random, 0, 300);
      queue.push({.time = time, .task = task, .what = task + 7});
      in[task] = time;
      while (!in.empty() && draw(random, 0, 1) == 0) {
        std::int64_t earliest = in.begin()->second;
        for (const auto& [known, at] : in) earliest = std::min(earliest, at);
        ASSERT_EQ(queue.next_time(), earliest);
        const Event event = queue.pop();
        ASSERT_EQ(event.time, earliest);
        ASSERT_EQ(event.what, event.task + 7);
        ASSERT_EQ(in.at(event.task), earliest);
        in.erase(event.task);
      }
    }
    EXPECT_EQ(queue.empty(), in.empty());
  }
}

}  // namespace
}  // namespace frazil
