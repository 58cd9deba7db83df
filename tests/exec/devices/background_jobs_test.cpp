#include "exec/devices/background_jobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace frazil {
namespace {

TEST(BackgroundJobs, AreDoneInOrderWhileTheCallerGoesOn) {
  std::vector<int> done;
  std::atomic<bool> may_go_on{false};
  BackgroundJobs jobs(true);
  jobs.start([&] {
    while (!may_go_on) std::this_thread::yield();
    done.push_back(0);
  });
  for (int i = 1; i < 20; ++i) jobs.start([&done, i] { done.push_back(i); });
  may_go_on = true;  // the caller came here
  jobs.wait();
  ASSERT_EQ(done.size(), 20U);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
}

TEST(BackgroundJobs, AfterOneThatHasThrownNoneIsDone) {
  std::atomic<int> done{0};
  BackgroundJobs jobs(true);
  jobs.start([] { throw std::runtime_error("full"); });
  EXPECT_THROW(jobs.wait(), std::runtime_error);
  EXPECT_THROW(jobs.check(), std::runtime_error);
  EXPECT_THROW(jobs.start([&] { ++done; }), std::runtime_error);
  EXPECT_THROW(jobs.wait(), std::runtime_error) << "each time it is asked";
  EXPECT_EQ(done, 0);
}

TEST(BackgroundJobs, EndWithTheOneInHand) {
  std::atomic<bool> has_begun{false};
  std::atomic<int> done{0};
  {
    BackgroundJobs jobs(true);
    jobs.start([&] {
      has_begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++done;
    });
    while (!has_begun) std::this_thread::yield();
  }
  EXPECT_EQ(done, 1);
}

TEST(BackgroundJobs, InTheForegroundAreDoneAtOnce) {
  int done = 0;
  BackgroundJobs jobs(false);
  jobs.start([&] { ++done; });
  EXPECT_EQ(done, 1);
  EXPECT_THROW(jobs.start([] { throw std::runtime_error("full"); }), std::runtime_error);
  jobs.start([&] { ++done; });
  jobs.wait();
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace frazil
