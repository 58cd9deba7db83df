#include "planner/reproduce/pipe_bd/loaded_steps.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/partition/hybrid_distribution.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

const std::vector<int> kSingles = {1, 1, 1, 1};

Duration find_period(const Workload& workload, const Loader& loader, bool barrier) {
  LoadedSteps training(loader);
  training.append(price_step(workload, barrier), 40);
  return training.find_period();
}

// The closed forms of a deterministic pipeline, whose first stage loads each batch. A barrier
// exposes the relay's ramp in each step; without one the longest stage is the period (Pipe-BD,
// sections on TR and DPU). A loader that waits to be asked adds its time to the first stage; one
// that works ahead is a stage of its own.
struct LoadedForms {
  Duration with_barrier{0};
  Duration decoupled{0};
};

LoadedForms find_loaded_forms(const BlockwiseTimes& times, const Loader& loader,
                              const std::vector<int>& cuts) {
  const Duration asked = loader.ahead == 0 ? loader.alone : Duration{0};
  const Duration ahead = loader.ahead == 0 ? Duration{0} : loader.alone;
  LoadedForms forms{ahead, ahead};
  Duration ramp = asked;
  for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
    Duration own = s == 0 ? asked : Duration{0};
    Duration students{0};
    for (int b = cuts[s]; b < cuts[s + 1]; ++b) {
      const auto block = static_cast<std::size_t>(b);
      ramp += times.teacher.back()[block];
      own += times.teacher.back()[block] + times.student.back()[block];
      students += times.student.back()[block];
    }
    forms.with_barrier = std::max(forms.with_barrier, ramp + students);
    forms.decoupled = std::max(forms.decoupled, own);
  }
  return forms;
}

TEST(LoadedSteps, HaveTheClosedFormsOfRelayingWhetherLoadersAreAskedOrWorkAhead) {
  for (const BlockwiseTimes& times : {make_imagenet_times(), make_cifar_times()}) {
    for (const int ahead : {0, 1, 2}) {
      for (const Duration load : {microseconds(0), microseconds(3'000), microseconds(60'000)}) {
        const Loader loader{.alone = load, .rate = 3, .capacity = 7, .ahead = ahead};
        visit_hybrid_plans(4, times.blocks(), [&](const auto& groups, const auto& cuts) {
          if (groups != kSingles) return;
          const Workload workload = make_relayed(times, {groups, cuts, Duration{0}});
          const LoadedForms expected = find_loaded_forms(times, loader, cuts);
          EXPECT_EQ(find_period(workload, loader, true), expected.with_barrier) << ahead;
          EXPECT_EQ(find_period(workload, loader, false), expected.decoupled) << ahead;
        });
      }
    }
  }
}

// Two stages of a millisecond and a loader that has all workers to itself where it is alone.
const Loader kPool{.alone = microseconds(12'000), .rate = 1, .capacity = 1, .ahead = 2};

BlockwiseTimes make_quick_times() {
  const std::vector<Duration> each(2, microseconds(500));
  return {{1, 4}, {each, each}, {each, each}};
}

TEST(LoadedSteps, LoadEachBatchOnceForAPipelineAndOnceForEachStudentAlone) {
  const BlockwiseTimes times = make_quick_times();
  // One device loads whole batches, or four devices a quarter each: the pool takes as long.
  EXPECT_EQ(find_period(make_relayed(times, {{1, 1}, {0, 1, 2}, {}}), kPool, false), kPool.alone);
  EXPECT_EQ(find_period(make_single_student(times, 0, 4), kPool, false), kPool.alone);
  // Each of four devices loads whole batches for itself.
  LoadedSteps alone(kPool);
  const PricedStep step = price_step(make_single_student(times, 0, 1), false);
  for (int device = 0; device < 4; ++device) alone.append(step, 40, DeviceId{device});
  const Duration last_step = microseconds(1'000);
  EXPECT_EQ(alone.find_end(), 40 * 4 * kPool.alone + last_step);
  EXPECT_EQ(alone.find_load_time(DeviceId{2}), 4 * kPool.alone);
}

TEST(LoadedSteps, GiveLoadersTheirOwnRateUntilThePoolIsFull) {
  const PricedStep step = price_step(make_single_student(make_quick_times(), 0, 1), false);
  // The pool serves two and a half loaders.
  const Loader loader{.alone = microseconds(10'000), .rate = 2, .capacity = 5, .ahead = 2};
  for (const auto& [devices, slower] : {std::pair(1, 1.0), {2, 1.0}, {3, 1.2}, {4, 1.6}}) {
    LoadedSteps training(loader);
    for (int device = 0; device < devices; ++device) training.append(step, 20, DeviceId{device});
    EXPECT_DOUBLE_EQ(to_ms(training.find_load_time(DeviceId{0})), 10 * slower) << devices;
  }
}

TEST(LoadedSteps, WaitOnCifarForFourQuartersASixthOfWhatDataParallelismWaits) {
  LoadedSteps training(make_cifar_loader());
  training.append(price_step(make_single_student(make_cifar_times(), 3, 4), false), 4);
  EXPECT_NEAR(to_ms(training.find_load_time(DeviceId{3})), kDataParallelEpoch.load / 60.0, 1e-5);
}

TEST(LoadedSteps, DrawTheTimesOfStudentsAloneAndTheSameForEqualSeeds) {
  const Workload workload = make_relayed(make_cifar_times(), make_cifar_pipeline());
  LoadedSteps training(make_cifar_loader());
  training.append(price_step(workload, true), 40);
  const StudentDraws draws{.seed = 5, .runs = 3, .amplitude_ppm = 250'000};
  const std::vector<Duration> drawn = training.draw_periods(draws);
  EXPECT_EQ(drawn, training.draw_periods(draws));
  EXPECT_NE(drawn[0], drawn[1]);
  StudentDraws none = draws;
  none.amplitude_ppm = 0;
  EXPECT_EQ(training.draw_periods(none), std::vector<Duration>(3, training.find_period()));
  // Students take at least three quarters of their time; teachers and loaders all of it.
  const Duration least = [&] {
    BlockwiseTimes times = make_cifar_times();
    for (Duration& student : times.student.back()) student = student * 3 / 4;
    return find_period(make_relayed(times, make_cifar_pipeline()), make_cifar_loader(), true);
  }();
  for (const Duration period : drawn) EXPECT_GE(period, least);
}

}  // namespace
}  // namespace frazil
