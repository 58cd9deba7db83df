// Tests how waiting is counted: idle time counts whole, time in which this process was stopped or
// at work nearly none.

#include "exec/devices/tick_count.h"

#include <gtest/gtest.h>

#include <ctime>
#include <thread>

namespace frazil {
namespace {

using std::chrono::milliseconds;

// Looks once a tick, idle between looks, until the count is over; returns the number of looks.
int wait_idly(TickCount& count) {
  int looks = 1;
  for (std::this_thread::sleep_for(count.tick()); !count.is_over(); ++looks) {
    std::this_thread::sleep_for(count.tick());
  }
  return looks;
}

// Time of a processor, for another program may hold this process up meanwhile.
void work_for(milliseconds time) {
  const auto used = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  const auto until = used() + time;
  while (used() < until) {
  }
}

TEST(TickCount, CountsIdleTimeWhole) {
  TickCount count(milliseconds(200));
  EXPECT_EQ(count.tick(), milliseconds(20));
  const SteadyTime begin = std::chrono::steady_clock::now();
  EXPECT_LE(wait_idly(count), 10);
  EXPECT_GE(since(begin), milliseconds(200));
}

// A look after a second stands for a process that was stopped for so long.
TEST(TickCount, CountsTwoTicksOfALongGap) {
  TickCount count(milliseconds(500));
  std::this_thread::sleep_for(milliseconds(1000));
  EXPECT_FALSE(count.is_over()) << "100 of 500 ms are counted";
  EXPECT_GE(wait_idly(count), 4);
}

TEST(TickCount, CountsATenthOfTheTimeInWhichThisProcessWorks) {
  TickCount spared(milliseconds(100));
  TickCount counted(milliseconds(100), TickCount::Busy::kCounted);
  bool is_over = false;
  for (int i = 0; i < 30; ++i) {
    work_for(milliseconds(10));
    EXPECT_FALSE(spared.is_over()) << i;
    is_over = counted.is_over();
  }
  EXPECT_TRUE(is_over);
}

TEST(TickCount, BeginsAgainWhenToldTo) {
  TickCount count(milliseconds(100));
  wait_idly(count);
  count.restart();
  EXPECT_FALSE(count.is_over());
}

TEST(TickCount, EndsTheShortestWait) {
  TickCount count(Duration{1});
  EXPECT_LE(wait_idly(count), 100);
}

}  // namespace
}  // namespace frazil
