// Threads that cannot be made are told in a sentence; those that run are ended and joined. The
// limit is on the memory of a process of its own.

#include "exec/devices/start_thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "exec/devices/step_fault.h"

namespace frazil {
namespace {

// Starts more threads than their stacks have room for, and exits with 7 if that is told well.
void start_too_many() {
  const rlimit room{std::size_t{1} << 29, std::size_t{1} << 29};
  setrlimit(RLIMIT_AS, &room);
  std::atomic<bool> ends{false};
  std::atomic<int> running{0};
  const auto make_job = [&](int) {
    return [&] {
      ++running;
      ends.wait(false);
      --running;
    };
  };
  try {
    start_threads(1000, make_job, [&] {
      ends = true;
      ends.notify_all();
    });
  } catch (const OutOfMemory& error) {
    const bool is_told = std::string(error.what()).starts_with("cannot start a thread: ");
    std::_Exit(is_told && running == 0 ? 7 : 3);
  }
  std::_Exit(2);
}

TEST(StartThread, TellsThatThereIsNoMemoryForAThreadAndEndsTheOthers) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(start_too_many(), testing::ExitedWithCode(7), "");
}

TEST(StartThread, StartsThemAll) {
  std::atomic<int> sum{0};
  auto threads = start_threads(
      5, [&](int n) { return [&sum, n] { sum += n; }; }, [] {});
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 10);
}

}  // namespace
}  // namespace frazil
