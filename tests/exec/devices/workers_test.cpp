// A failure in one worker ends the job of all with one cause, and leaves nothing behind.

#include "exec/devices/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "exec/communication/in_process_communicator.h"
#include "exec/devices/step_fault.h"
#include "tests/exec/support/rank_failures.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using Ranks = std::vector<std::unique_ptr<Communicator>>;

// Rank 1's kernel fails in step 17, and the other ranks wait for it.
void fail_a_step(Workers& workers, const Ranks& ranks) {
  const Action action = parse_action("1B3");
  workers.run(
      [&](DeviceId device) {
        Communicator& self = *ranks[device.index()];
        try {
          if (device.value == 1) throw std::runtime_error("the kernel failed");
          if (device.value == 2) self.barrier();
          (void)self.receive(1, {.step = 17});
        } catch (...) {
          rethrow_at({.rank = self.rank(), .step = 17, .action = &action});
        }
      },
      [&](const std::string& reason) { ranks[0]->abort(reason); });
}

void pass_a_message_around(Workers& workers, const Ranks& ranks) {
  workers.run([&](DeviceId device) {
    Communicator& self = *ranks[device.index()];
    const int size = self.size();
    if (self.rank() > 0) (void)self.receive(self.rank() - 1, {});
    self.send((self.rank() + 1) % size, {}, {});
    if (self.rank() == 0) (void)self.receive(size - 1, {});
    self.barrier();
    self.finish();
  });
}

TEST(WorkersAndRanks, AFailedKernelIsTheOneCauseAndANewWorldRunsOnTheSameThreads) {
  Workers workers(3);
  const std::ptrdiff_t threads = count_threads();
  for (int round = 0; round < 20; ++round) {
    const Ranks failing = make_in_process_communicators(3);
    EXPECT_EQ(failure_of([&] { fail_a_step(workers, failing); }).sentence,
              "rank 1, step 17, action 1B3: the kernel failed");
    const Ranks fresh = make_in_process_communicators(3);
    EXPECT_EQ(failure_of([&] { pass_a_message_around(workers, fresh); }).sentence, "");
  }
  EXPECT_TRUE(threads_come_down_to(threads));
}

TEST(WorkersAndRanks, ALateWorkerEndsTheJobWithTheDeadlineThatItBroke) {
  Workers workers(2);
  const Ranks ranks = make_in_process_communicators(2, {.deadline = milliseconds(20)});
  std::atomic<bool> aborted{false};
  const RankFailure failure = failure_of([&] {
    workers.run(
        [&](DeviceId device) {
          if (device.value == 0) (void)ranks[0]->receive(1, {.index = 5, .step = 2});
          while (!aborted) std::this_thread::sleep_for(milliseconds(1));
          ranks[1]->send(0, {.index = 5, .step = 2}, {});
        },
        [&](const std::string& reason) {
          ranks[0]->abort(reason);
          aborted = true;
        });
  });
  EXPECT_EQ(failure.sentence, "rank 0 waited 20.000 ms for probe 5 (step 2) from rank 1");
  EXPECT_TRUE(failure.fault);
}

TEST(Workers, LeaveNoThreadBehind) {
  { const Workers first(1); }  // torch makes what it keeps
  const std::ptrdiff_t threads = count_threads();
  {
    Workers workers(4);
    EXPECT_THROW(workers.run([](DeviceId) { throw std::runtime_error("all of them"); }),
                 std::runtime_error);
  }
  EXPECT_TRUE(threads_come_down_to(threads));
}

TEST(Workers, AJobOverItsLimitFailsAndNamesWhoHasNotEnded) {
  Workers workers(3);
  std::atomic<bool> told{false};
  const RankFailure failure = failure_of([&] {
    workers.run(
        [&](DeviceId device) {
          while (device.value > 0 && !told) std::this_thread::sleep_for(milliseconds(1));
        },
        [&](const std::string&) { told = true; }, {.time = milliseconds(500)});
  });
  EXPECT_EQ(failure.sentence, "ranks 1 and 2 have not ended the job within 500.000 ms");
  std::atomic<int> runs{0};
  workers.run([&](DeviceId) { ++runs; });
  EXPECT_EQ(runs, 3);
}

TEST(Workers, SaysWhereThoseAreThatHaveNotEnded) {
  Workers workers(3);
  std::atomic<int> ready{0};
  std::atomic<bool> told{false};
  const RankFailure failure = failure_of([&] {
    workers.run(
        [&](DeviceId device) {
          ++ready;
          while ((device.value > 0 || ready < 3) && !told) {
            std::this_thread::sleep_for(milliseconds(1));
          }
        },
        [&](const std::string&) { told = true; },
        {.time = milliseconds(500),
         .place = [](DeviceId device) { return "action " + std::to_string(device.value) + "F0"; }});
  });
  EXPECT_EQ(failure.sentence,
            "ranks 1 and 2 have not ended the job within 500.000 ms: rank 1 at action 1F0; "
            "rank 2 at action 2F0");
}

TEST(Workers, AJobThatGoesOnMayTakeManyTimesItsLimit) {
  Workers workers(1);
  std::atomic<std::int64_t> actions{0};
  const auto work = [&](DeviceId) {
    for (int i = 0; i < 60; ++i) {
      std::this_thread::sleep_for(milliseconds(20));
      ++actions;
    }
  };
  workers.run(work, {}, {.time = milliseconds(1000), .progress = [&] { return actions.load(); }});
  EXPECT_EQ(actions, 60);
  std::atomic<bool> told{false};
  const RankFailure failure = failure_of([&] {
    workers.run(
        [&](DeviceId) {
          while (!told) std::this_thread::sleep_for(milliseconds(1));
        },
        [&](const std::string&) { told = true; },
        {.time = milliseconds(20), .progress = [&] { return actions.load(); }});
  });
  EXPECT_EQ(failure.sentence, "rank 0 has not ended an action within 20.000 ms");
}

// A stuck worker and its waiting test share this; the job touches nothing else.
struct Gate {
  std::atomic<bool> open{false};
  std::atomic<int> passed{0};
};

std::function<void(DeviceId)> stick_at(const std::shared_ptr<Gate>& gate) {
  return [gate](DeviceId device) {
    if (device.value == 0) throw std::runtime_error("rank 0 gave up");
    while (!gate->open) std::this_thread::sleep_for(milliseconds(1));
    ++gate->passed;
    throw std::runtime_error("too late to matter");
  };
}

WorkerOptions impatient(std::vector<std::string>& told) {
  return {.grace = milliseconds(500),
          .on_stuck = [&told](const std::string& sentence) { told.push_back(sentence); }};
}

TEST(Workers, AStuckOneIsNamedWithTheCauseAndServesAgainOnceItIsBack) {
  std::vector<std::string> told;
  const auto gate = std::make_shared<Gate>();
  Workers workers(2, impatient(told));
  int failures = 0;
  EXPECT_THROW(workers.run(stick_at(gate), [&](const std::string&) { ++failures; }), WorkerStuck);
  EXPECT_EQ(told,
            std::vector<std::string>{"rank 0 gave up; rank 1 has not come back 500.000 ms later"});
  EXPECT_EQ(failures, 1);
  std::atomic<int> runs{0};
  EXPECT_EQ(failure_of([&] { workers.run([&](DeviceId) { ++runs; }); }).sentence,
            "rank 1 has not come back from the job before");
  EXPECT_EQ(runs, 0);
  gate->open = true;
  while (runs == 0) (void)failure_of([&] { workers.run([&](DeviceId) { ++runs; }); });
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(failures, 1) << "nobody is told of a failure after the end";
}

TEST(Workers, AStuckOneOutlivesThemAndEndsWithItsJob) {
  { const Workers first(1); }
  const std::ptrdiff_t threads = count_threads();
  std::vector<std::string> told;
  const auto gate = std::make_shared<Gate>();
  {
    Workers workers(2, impatient(told));
    EXPECT_THROW(workers.run(stick_at(gate)), WorkerStuck);
  }
  EXPECT_EQ(gate.use_count(), 2) << "the stuck thread keeps its job";
  gate->open = true;
  EXPECT_TRUE(threads_come_down_to(threads));
  EXPECT_EQ(gate->passed, 1);
  EXPECT_EQ(gate.use_count(), 1);
}

TEST(WorkersDeathTest, AStuckOneEndsTheProcessUnlessSomebodyKnowsBetter) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto stick = [] {
    Workers workers(2, {.grace = milliseconds(500), .on_stuck = {}});
    workers.run(stick_at(std::make_shared<Gate>()));
  };
  EXPECT_EXIT(stick(), testing::ExitedWithCode(6),
              "^frazil: rank 0 gave up; rank 1 has not come back 500.000 ms later\n$");
}

}  // namespace
}  // namespace frazil
