// Measured memory is compared with the simulated where the frozen prefix comes from the cache.

#include <gtest/gtest.h>

#include "tests/exec/support/measured_memories.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

TEST(CachedMemory, EqualsTheSimulated) {
  const ModelSpec model = make_vit(small_config());
  const ModelProfile profile = make_measured_profile(model, {}, small_micro_batches(0, 1).front());
  for (const ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZbH1}) {
    for (const char* mask : {"01111", "00111", "00011", "00101"}) {
      for (const std::vector<int>& cuts : std::vector<std::vector<int>>{{}, {5}, {5, 6}, {6}}) {
        for (const MemoryPolicy policy : {MemoryPolicy::kKeep, MemoryPolicy::kRecompute}) {
          const bool recomputes = policy == MemoryPolicy::kRecompute;
          SCOPED_TRACE(std::string(schedule_name(kind)) + ", " + mask + ", " +
                       std::to_string(cuts.size() + 1) + " stages" +
                       (recomputes ? ", recomputing" : ""));
          PlanShape shape{.schedule = kind, .cuts = {cuts}, .mask = mask};
          Plan plan = make_small_plan(profile, shape);
          plan.cache_frozen_prefix = true;
          for (Stage& stage : plan.pipelines[0].stages) stage.memory = policy;
          const std::vector<Samples> step = small_micro_batches(0, shape.micro_batches);
          expect_equal(measure_memories(model, {}, profile, plan, devices_of(shape), {step, step}));
        }
      }
    }
  }
}

}  // namespace
}  // namespace frazil
