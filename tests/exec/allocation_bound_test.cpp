// The allocator's peak of every schedule, from above.

#include "tests/exec/allocation_bound.h"

#include <gtest/gtest.h>

#include "tests/exec/family_plans.h"

namespace frazil {
namespace {

struct Peaks {
  std::vector<std::int64_t> measured;  // by device
  std::vector<std::int64_t> bounds;
};

OptimizerConfig make_optimizer(bool clip) {
  OptimizerConfig optimizer;
  optimizer.clip_norm = clip ? 0.5 : 0;
  return optimizer;
}

Peaks compare(const FamilyForm& form, bool clip) {
  const ModelSpec model = make_vit(small_config());
  const OptimizerConfig optimizer = make_optimizer(clip);
  const std::vector<Samples> samples = small_micro_batches(0, form.micro_batches);
  static const ModelProfile profile =
      make_measured_profile(model, optimizer, small_micro_batches(0, 1).front());
  const Plan plan = place_family(form, profile);
  Run run(model, optimizer, 7, form.devices);
  run.switch_to(plan);
  run.step(0, 1e-2, samples);
  run.measure({.memory = true});
  Peaks peaks;
  for (const MeasuredMemory& memory : run.step(1, 1e-2, samples).memory) {
    peaks.measured.push_back(memory.allocator_peak.count);
  }
  peaks.bounds = bound_allocations({.model = model,
                                    .optimizer = optimizer,
                                    .profile = profile,
                                    .micro_batch = samples.front(),
                                    .plan = plan,
                                    .devices = form.devices});
  return peaks;
}

// Two devices with clipping and nothing frozen, four with frozen layers in between.
TEST(AllocationBound, HoldsForEverySchedule) {
  for (const ScheduleFamily& family : schedule_families()) {
    for (const int devices : {2, 4}) {
      const bool clip = family.versions == WeightVersions::kSync && devices == 2;
      const FamilyForm form{family.kind, devices, chunks_of(family).front(), 8,
                            devices == 2 ? "11111" : "10101"};
      SCOPED_TRACE(name_of(form) + (clip ? ", clipped" : ""));
      const Peaks peaks = compare(form, clip);
      ASSERT_EQ(peaks.measured.size(), peaks.bounds.size());
      for (std::size_t d = 0; d < peaks.bounds.size(); ++d) {
        EXPECT_LE(peaks.measured[d], peaks.bounds[d]) << "device " << d;
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
