// The allocator's peak of every schedule is bounded from above.

#include "tests/exec/support/allocation_bound.h"

#include <gtest/gtest.h>

#include "tests/exec/support/family_plans.h"

namespace frazil {
namespace {

struct Peaks {
  std::vector<std::int64_t> measured;  // by device
  std::vector<std::int64_t> bounds;
};

const ModelProfile& measured_profile() {
  static const ModelProfile profile =
      make_measured_profile(make_vit(small_config()), {}, small_micro_batches(0, 1).front());
  return profile;
}

Peaks compare(const Plan& plan, int devices, bool clip) {
  const ModelSpec model = make_vit(small_config());
  const OptimizerConfig optimizer = make_family_optimizer(clip);
  const std::vector<Samples> samples = small_micro_batches(0, plan.micro_batches());
  Run run(model, optimizer, 7, devices);
  run.transition_to(plan);
  run.step(0, 1e-2, samples);
  run.measure({.memory = true});
  Peaks peaks;
  for (const MeasuredMemory& memory : run.step(1, 1e-2, samples).memory) {
    peaks.measured.push_back(memory.allocator_peak.count);
  }
  peaks.bounds = bound_allocations({.model = model,
                                    .optimizer = optimizer,
                                    .profile = measured_profile(),
                                    .micro_batch = samples.front(),
                                    .plan = plan,
                                    .devices = devices});
  return peaks;
}

Peaks compare(const FamilyForm& form, bool clip) {
  return compare(place_family(form, measured_profile()), form.devices, clip);
}

// A meter that saw nothing would pass any bound, and a bound of twice the peak would say little.
void expect_bounded(const Peaks& peaks) {
  ASSERT_EQ(peaks.measured.size(), peaks.bounds.size());
  for (std::size_t d = 0; d < peaks.bounds.size(); ++d) {
    EXPECT_GT(peaks.measured[d], 0) << "device " << d;
    EXPECT_LE(peaks.measured[d], peaks.bounds[d]) << "device " << d;
    EXPECT_LE(peaks.bounds[d], 2 * peaks.measured[d]) << "device " << d;
  }
}

// Plans have two devices with clipping and nothing frozen, or four with frozen layers in between.
TEST(AllocationBound, HoldsForEverySchedule) {
  for (const ScheduleFacts& facts : all_schedules()) {
    for (const int devices : {2, 4}) {
      const bool clip = facts.versions == WeightVersions::kSync && devices == 2;
      const FamilyForm form{facts.kind, devices, chunks_of(facts).front(), 8,
                            devices == 2 ? "11111" : "10101"};
      SCOPED_TRACE(name_of(form) + (clip ? ", clipped" : ""));
      expect_bounded(compare(form, clip));
    }
  }
}

TEST(AllocationBound, HoldsWithReplicasAndASharedStage) {
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward}) {
    for (const bool clip : {false, true}) {
      SCOPED_TRACE(std::string(schedule_name(kind)) + (clip ? ", clipped" : ""));
      expect_bounded(
          compare(make_small_plan(measured_profile(), {kind, 8, {{4}, {4}}, {4, 4}}), 4, clip));
      expect_bounded(
          compare(make_small_plan(measured_profile(), {kind, 7, {{4}, {3}}, {4, 3}}), 4, clip));
      for (std::size_t shared = 0; shared < 2; ++shared) {
        Plan plan = make_small_plan(measured_profile(), {kind, 8, {{4}}, {8}});
        plan.pipelines[0].stages[shared].devices.emplace_back(2);
        expect_bounded(compare(plan, 3, clip));
      }
    }
  }
}

// A 1F1B that kept its micro-batches as GPipe does would break its bound.
TEST(AllocationBound, TellsSchedulesApart) {
  const Peaks gpipe = compare({.kind = ScheduleKind::kGpipe, .micro_batches = 8}, false);
  const Peaks one_each =
      compare({.kind = ScheduleKind::kOneForwardOneBackward, .micro_batches = 8}, false);
  for (std::size_t d = 0; d < 2; ++d) EXPECT_LT(one_each.bounds[d], gpipe.measured[d]);
}

}  // namespace
}  // namespace frazil
