// The memory that gradients take while devices add them is compared with the simulated.

#include <gtest/gtest.h>

#include "exec/state/optimizer.h"
#include "planner/lowering/footprint.h"
#include "planner/plan/activity.h"
#include "tests/exec/models/model_plans.h"
#include "tests/exec/support/measured_memories.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

// Returns what the device's sums take by themselves.
std::int64_t held_before(const Plan& plan, const ModelProfile& profile, PipelineId pipeline,
                         StageId stage, DeviceId device) {
  const Activity activity = find_activity(profile, plan.mask);
  return find_footprint(plan, pipeline, stage, device, profile, activity).gradients.count;
}

struct Owners {
  std::vector<int> owned;  // micro-batches by replica
  ReductionMode mode = ReductionMode::kExact;
  bool takes_more = true;  // than the sums before, on the first device
};

// The replicas have one stage each. A tree of several nodes on a device has room for what comes
// later.
TEST(ReductionMemory, EqualsTheSimulatedOfReplicas) {
  const ModelSpec model = make_vit(small_config());
  const ModelProfile profile = make_measured_profile(model, {}, small_micro_batches(0, 1).front());
  for (const auto& [owned, mode, takes_more] :
       std::vector<Owners>{{{1, 1}},
                           {{1, 1, 1}},
                           {{1, 1, 1, 1}},
                           {{2, 1}, ReductionMode::kExact, false},
                           {{1, 3, 2}},
                           {{3, 3, 2}},
                           {{4, 4}, ReductionMode::kExact, false},
                           {{1, 1}, ReductionMode::kFast},
                           {{2, 3, 1}, ReductionMode::kFast},
                           {{2, 2, 2, 2}, ReductionMode::kFast}}) {
    int all = 0;
    std::string name;
    for (const int count : owned) {
      all += count;
      name += std::to_string(count) + " ";
    }
    SCOPED_TRACE(name + (mode == ReductionMode::kExact ? "exact" : "fast"));
    Plan plan = make_small_plan(profile, {.micro_batches = all,
                                          .cuts = std::vector<std::vector<int>>(owned.size()),
                                          .owned = owned});
    plan.reduction = mode;
    const Memories memories =
        measure_memories(model, {}, profile, plan, static_cast<int>(owned.size()),
                         {small_micro_batches(0, all), small_micro_batches(1, all)});
    expect_equal(memories);
    const std::int64_t before = held_before(plan, profile, PipelineId{0}, StageId{0}, DeviceId{0});
    EXPECT_EQ(held(memories.measured[0], MemoryKind::kGradients) > before, takes_more);
  }
}

// A parameter has two uses, on one device, on two, and on replicas of both.
TEST(ReductionMemory, EqualsTheSimulatedOfTiedParameters) {
  const TestModel model = decoder_model();
  const auto samples = [&](std::uint64_t seed, int micro_batches) {
    return model.samples({.seed = seed, .micro_batches = micro_batches});
  };
  const ModelProfile profile = make_measured_profile(model.spec, {}, samples(1, 1).front());
  int more = 0;
  for (const int micro_batches : {1, 2, 4}) {
    for (const int devices : {1, 2, 3}) {
      for (const int replicas : {1, 2}) {
        if (micro_batches < replicas) continue;
        const PlanForm form{
            .devices = devices, .micro_batches = micro_batches, .replicas = replicas};
        SCOPED_TRACE(name_of(form));
        const Plan plan = make_plan(model, form);
        const Memories memories =
            measure_memories(model.spec, {}, profile, plan, form.all_devices(),
                             {samples(1, micro_batches), samples(2, micro_batches)});
        expect_equal(memories);
        if (held(memories.measured[0], MemoryKind::kGradients) >
            held_before(plan, profile, PipelineId{0}, StageId{0}, DeviceId{0})) {
          ++more;
        }
      }
    }
  }
  EXPECT_GE(more, 6) << "reductions that take more than the sums before";
}

}  // namespace
}  // namespace frazil
