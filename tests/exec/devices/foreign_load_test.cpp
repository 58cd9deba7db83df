#include "exec/devices/foreign_load.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace frazil {
namespace {

// Computes for so many seconds of this process's processor time.
void compute(double seconds) {
  const auto used = [] {
    timespec time{};
    (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  const double end = used() + seconds;
  while (used() < end) {
  }
}

TEST(UsedSeconds, CountThoseOfChildrenThatLiveAndThatHaveEnded) {
  const double before = used_seconds();
  const pid_t child = ::fork();
  if (child == 0) {
    compute(0.3);
    (void)::kill(::getpid(), SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_GE(used_seconds() - before, 0.25) << "of one that lives";
  (void)::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_GE(used_seconds() - before, 0.25) << "of one that has ended";
}

TEST(UsedSeconds, CountThoseOfThisProcess) {
  const double before = used_seconds();
  compute(0.1);
  EXPECT_GE(used_seconds() - before, 0.09);
}

}  // namespace
}  // namespace frazil
