// The staircase goes from one pipeline of eight stages to two of four, four of two, and eight of
// one, as layers freeze; with eight devices, on however few cores.

#include <gtest/gtest.h>

#include <bit>
#include <optional>

#include "exec/cache/prefix_cache.h"
#include "exec/run/run.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr int kStaircaseDevices = 8;
constexpr int kStaircaseMicroBatches = 8;
constexpr int kStepsOfPhase = 3;

struct Phase {
  PlanShape shape;
  bool caches = false;  // where the prefix lies in the first stage
};

// A run that does not descend takes the masks alone: one device holds all.
std::vector<Phase> staircase(bool descends) {
  std::vector<Phase> phases{
      {{.cuts = {{1, 2, 3, 4, 5, 6, 7}}, .owned = {8}, .mask = "11111"}},
      {{.cuts = {{3, 5, 7}, {3, 5, 7}}, .owned = {4, 4}, .mask = "00111"}, true},
      {{.cuts = {{6}, {6}, {6}, {6}}, .owned = {2, 2, 2, 2}, .mask = "00011"}, true},
      {{.cuts = std::vector<std::vector<int>>(8), .owned = std::vector<int>(8, 1), .mask = "00001"},
       true},
      {{.cuts = {{1, 2, 3, 4, 5, 6, 7}}, .owned = {8}, .mask = "11111"}}};  // and up again
  for (Phase& phase : phases) {
    phase.shape.micro_batches = kStaircaseMicroBatches;
    if (!descends) {
      phase.shape.cuts = {{}};
      phase.shape.owned = {kStaircaseMicroBatches};
    }
  }
  return phases;
}

struct StaircaseCourse {
  std::vector<std::uint64_t> losses;  // their bits
  std::uint64_t weights = 0;
  std::int64_t found = 0;  // in the cache
};

StaircaseCourse take_course(bool descends, bool caches) {
  VitConfig config = small_config();
  config.dropout = 0.1;
  Run run(make_vit(config), {.clip_norm = 1}, 7, descends ? kStaircaseDevices : 1);
  const std::vector<Samples> batch = small_micro_batches(0, kStaircaseMicroBatches);
  std::vector<std::int64_t> ids;
  for (int i = 0; i < kStaircaseMicroBatches * kSmallMicroBatch; ++i) ids.push_back(i);
  const FileSystem files = real_file_system();
  std::optional<PrefixCache> cache;
  if (caches) {
    cache.emplace(run.model(), run.outputs(batch[0]), static_cast<std::int64_t>(ids.size()), files,
                  PrefixCacheOptions{.limits = {Bytes{1 << 24}, {}, {}}});
    run.attach(*cache);
  }
  StaircaseCourse course;
  Step step = 0;
  for (const Phase& phase : staircase(descends)) {
    Plan plan = make_small_plan(run.structure(), phase.shape);
    plan.cache_frozen_prefix = caches && phase.caches;
    run.transition_to(plan);
    for (int i = 0; i < kStepsOfPhase; ++i) {
      const StepResult result = run.step(step++, 3e-3, batch, false, {}, ids);
      course.losses.push_back(std::bit_cast<std::uint64_t>(result.loss));
    }
  }
  course.weights = run.weight_hash();
  if (cache) course.found = cache->counts().found;
  return course;
}

TEST(Staircase, OfEightDevicesHasTheBitsOfOneDevice) {
  const StaircaseCourse one = take_course(false, false);
  for (const bool caches : {false, true}) {
    SCOPED_TRACE(caches ? "cached" : "not cached");
    const StaircaseCourse eight = take_course(true, caches);
    EXPECT_EQ(eight.losses, one.losses);
    EXPECT_EQ(eight.weights, one.weights);
    // Each phase that caches fills in its first step and reads in its other steps.
    EXPECT_EQ(eight.found,
              caches ? 3 * (kStepsOfPhase - 1) * kStaircaseMicroBatches * kSmallMicroBatch : 0);
  }
}

}  // namespace
}  // namespace frazil
