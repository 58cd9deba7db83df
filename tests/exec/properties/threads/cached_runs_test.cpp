// A frozen prefix that is cached changes no bit of a run, and runs once per sample and depth.

#include <gtest/gtest.h>

#include <bit>
#include <stdexcept>

#include "exec/data/dataset.h"
#include "exec/models/boundary.h"
#include "profiles/error.h"
#include "tests/exec/disk/faulty_files.h"
#include "tests/exec/models/model_plans.h"
#include "tests/exec/models/normed_cnn.h"
#include "tests/exec/support/cached_courses.h"

namespace frazil {
namespace {

using enum ScheduleKind;

// The masks deepen, stay, thaw and freeze again. The frozen prefix has 0, 1, 1, 3, 3, 5, 0, 3, 3
// layers.
const std::vector<std::string> kCachedMasks{"11111", "01111", "01111", "00111", "00111",
                                            "00011", "11111", "00111", "00111"};

std::vector<PlanShape> under_masks(PlanShape shape) {
  std::vector<PlanShape> epochs;
  for (const std::string& mask : kCachedMasks) {
    shape.mask = mask;
    epochs.push_back(shape);
  }
  return epochs;
}

// What each of these courses must equal: on one device, without a cache.
const Course& plain_course() {
  static const Course plain = take_course(under_masks({}), {});
  return plain;
}

void expect_same_bits(const Course& cached, const Course& uncached) {
  EXPECT_EQ(cached.losses, uncached.losses);
  EXPECT_EQ(cached.weights, uncached.weights);
  EXPECT_GT(cached.counts.found, 0);
}

TEST(CachedRun, HasTheBitsOfAPlainOneUnderEveryShape) {
  const std::vector<PlanShape> shapes{{},
                                      {.schedule = kGpipe, .cuts = {{5}}},
                                      {.cuts = {{6}}},
                                      {.schedule = kZbH1, .cuts = {{5, 7}}},
                                      {.cuts = {{5, 6}}},
                                      {.cuts = {{}, {}}, .owned = {3, 3}},
                                      {.cuts = {{5}, {}}, .owned = {4, 2}},
                                      {.schedule = kZbH2, .cuts = {{6}, {5}}, .owned = {3, 3}}};
  for (const PlanShape& shape : shapes) {
    SCOPED_TRACE(std::string(schedule_name(shape.schedule)) + " on " +
                 std::to_string(devices_of(shape)) + " devices");
    expect_same_bits(take_course(under_masks(shape), {.cache = ample_memory()}), plain_course());
  }
}

TEST(CachedRun, GoesOnWhilePlansChange) {
  std::vector<PlanShape> epochs = under_masks({});
  for (std::size_t e = 0; e < epochs.size(); ++e) {
    if (e % 3 == 1) epochs[e].cuts = {{5, 6}};
    if (e % 3 == 2) {
      epochs[e].cuts = {{}, {}, {}};
      epochs[e].owned = {3, 2, 1};
    }
  }
  expect_same_bits(take_course(epochs, {.cache = ample_memory()}), plain_course());
}

TEST(CachedRun, RunsEachFrozenLayerOncePerSampleAndDepth) {
  const Course course =
      take_course(under_masks({.cuts = {{5}, {6}}, .owned = {3, 3}}), {.cache = ample_memory()});
  // The texts say, by epoch, which of the first six layers run: a deeper prefix begins where the
  // old one ended, one that has thawed begins anew.
  const std::vector<std::string> runs{"111111", "111111", "011111", "011111", "000111",
                                      "000111", "111111", "111111", "000111"};
  ASSERT_EQ(course.forwards.size(), runs.size());
  for (std::size_t e = 0; e < runs.size(); ++e) {
    for (std::size_t l = 0; l < runs[e].size(); ++l) {
      EXPECT_EQ(course.forwards[e][l], runs[e][l] == '1' ? kCourseSamples : 0)
          << "epoch " << e << ", layer " << l;
    }
  }
  EXPECT_EQ(course.counts.stored, 4 * kCourseSamples);
  EXPECT_EQ(course.counts.found, 3 * kCourseSamples);
  EXPECT_EQ(course.counts.found_before, 2 * kCourseSamples);
  EXPECT_EQ(course.counts.missed, 2 * kCourseSamples);
}

// The last batch has 14 samples, its last micro-batch 2: in other epochs these are in micro-batches
// of 3.
TEST(CachedRun, HasTheSameBitsWithAShortLastBatch) {
  const std::vector<PlanShape> epochs = under_masks({.cuts = {{5}}});
  expect_same_bits(take_course(epochs, {.cache = ample_memory(), .samples = 50}),
                   take_course(epochs, {.samples = 50}));
}

TEST(CachedRun, HasTheSameBitsWhereStagesRecompute) {
  const std::vector<PlanShape> epochs = under_masks({.cuts = {{5}}});
  expect_same_bits(take_course(epochs, {.cache = ample_memory(), .recomputes = true}),
                   plain_course());
}

// Each device of the stage reads for its own micro-batches, or for its own samples (which round
// otherwise than whole micro-batches do).
TEST(CachedRun, HasTheSameBitsWhereDevicesShareTheFirstStage) {
  const std::vector<PlanShape> epochs = under_masks({.cuts = {{5}}});
  for (const DeviceAxis axis : {DeviceAxis::kData, DeviceAxis::kSamples}) {
    SCOPED_TRACE(axis == DeviceAxis::kData ? "micro-batches" : "samples");
    const Course cached = take_course(epochs, {.cache = ample_memory(), .shared = axis});
    expect_same_bits(cached, take_course(epochs, {.shared = axis}));
    EXPECT_EQ(cached.counts.stored, 4 * kCourseSamples);
  }
}

// Some samples of a micro-batch are there and others are not, for which the frozen layers run.
TEST(CachedRun, HasTheSameBitsWithRoomForSomeSamplesAlone) {
  const std::vector<PlanShape> epochs = under_masks({.cuts = {{}, {}}, .owned = {3, 3}});
  PrefixCacheOptions some = ample_memory();
  some.limits.memory = Bytes{17 * 32 * 4 * 40};  // of 40 samples
  const Course course = take_course(epochs, {.cache = some});
  expect_same_bits(course, plain_course());
  EXPECT_GT(course.counts.turned_away, 0);
  EXPECT_GT(course.counts.missed, 2 * kCourseSamples);
}

TEST(CachedRun, FindsItselfRightWhereItChecks) {
  const std::vector<PlanShape> epochs = under_masks({.cuts = {{5}}});
  PrefixCacheOptions checks = ample_memory();
  checks.checks = true;
  const Course course = take_course(epochs, {.cache = checks});
  expect_same_bits(course, plain_course());
  for (const std::vector<std::int64_t>& forwards : course.forwards) {
    EXPECT_EQ(forwards[0], kCourseSamples) << "the prefix runs all the same";
  }
}

TEST(CachedRun, InBfloat16IsNearWithHalfTheBytes) {
  const std::vector<PlanShape> epochs = under_masks({});
  PrefixCacheOptions rounds = ample_memory();
  rounds.precision = FeaturePrecision::kBfloat16;
  const Course rounded = take_course(epochs, {.cache = rounds});
  const Course& exact = plain_course();
  EXPECT_NE(rounded.losses, exact.losses);
  for (std::size_t i = 0; i < exact.losses.size(); ++i) {
    EXPECT_NEAR(std::bit_cast<double>(rounded.losses[i]), std::bit_cast<double>(exact.losses[i]),
                0.05);
  }
}

TEST(CachedRun, OutlivesADiskThatFails) {
  std::vector<PlanShape> epochs = under_masks({.cuts = {{5}}});
  epochs.resize(5);
  const Course uncached = take_course(epochs, {});
  const PrefixCacheOptions on_disk{
      .limits = {{}, Bytes{1 << 24}, std::filesystem::temp_directory_path()}};
  FaultyFiles faulty(real_file_system());
  const Course whole = take_course(epochs, {.cache = on_disk, .files = faulty.files()});
  expect_same_bits(whole, uncached);
  EXPECT_TRUE(whole.warnings.empty());
  const int calls = faulty.calls();
  ASSERT_GT(calls, 100);
  int told = 0;
  for (const Fault fault : {Fault::kNoSpace, Fault::kInputOutput}) {
    for (int call = 2; call + 2 < calls; call += calls / 4) {
      SCOPED_TRACE("call " + std::to_string(call));
      FaultyFiles failing(real_file_system());
      failing.arm(fault, call);
      const Course course = take_course(epochs, {.cache = on_disk, .files = failing.files()});
      EXPECT_TRUE(failing.has_struck());
      EXPECT_EQ(course.losses, uncached.losses);
      EXPECT_EQ(course.weights, uncached.weights);
      const bool is_told = !has_another_way(failing.log().at(static_cast<std::size_t>(call)));
      EXPECT_EQ(course.warnings.size(), is_told ? 1U : 0U);
      told += is_told ? 1 : 0;
    }
  }
  EXPECT_GE(told, 2);
}

// Several tensors cross a depth, some past several layers.
TEST(CachedRun, OfModelsWithSeveralTensorsAtABoundary) {
  int most_tensors = 0;
  int compared = 0;
  for (const TestModel& model :
       {encoder_model(), decoder_model(), uneven_mlp_model(), small_cnn_model(),
        distillation_model(), normed_cnn_model(), small_vgg_model()}) {
    const int blocks = static_cast<int>(model.mask.size());
    for (int frozen = 1; frozen < blocks; ++frozen) {
      std::string mask = model.mask;
      for (int b = 0; b < frozen; ++b) mask[static_cast<std::size_t>(b)] = '0';
      if (mask.find('1') == std::string::npos) continue;
      SCOPED_TRACE(model.spec.name + ", " + mask);
      const auto train = [&](bool caches) {
        frazil::Run run(model.spec, clipped_adamw(), 7, 2);
        Plan plan = make_plan(model, {.mask = mask});
        plan.cache_frozen_prefix = caches;
        const int depth = find_activity(run.structure(), plan).cached;
        const auto samples = model.samples({.seed = 3});
        const std::vector<std::int64_t> ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
        const FileSystem files = real_file_system();
        PrefixCache cache(model.spec, run.outputs(samples[0]), 12, files, ample_memory());
        run.attach(cache);
        if (caches && depth > 0 && depth < model.layers()) {
          plan.pipelines.assign(
              1, make_pipeline(model.layers(), {LayerId{depth}}, {DeviceId{0}, DeviceId{1}},
                               {MicroBatchId{0}, MicroBatchId{3}}));
        }
        run.transition_to(plan);
        std::vector<double> losses;
        for (Step step = 0; step < 3; ++step) {
          losses.push_back(run.step(step, 1e-2, samples, false, {}, ids).loss);
        }
        if (caches && cache.depth() > 0) {
          EXPECT_EQ(cache.counts().found, 24);
          ++compared;
          most_tensors = std::max(
              most_tensors, static_cast<int>(find_boundary(model.spec, cache.depth()).size()));
        }
        return std::pair(losses, run.weight_hash());
      };
      EXPECT_EQ(train(true), train(false));
    }
  }
  EXPECT_GE(compared, 10);
  EXPECT_GE(most_tensors, 2);
}

TEST(PrefixCache, ThatChecksNamesTheSampleWithOtherBits) {
  const ModelSpec model = make_vit(small_config());
  frazil::Run run(model, {}, 7, 1);
  const Samples samples = make_synthetic(6, 1, 1, 8, 10, 1).train.whole();
  PrefixCacheOptions options = ample_memory();
  options.checks = true;
  const FileSystem files = real_file_system();
  PrefixCache cache(model, run.outputs(samples), 6, files, options);
  run.attach(cache);
  PlanShape shape;
  shape.mask = "00111";
  Plan plan = make_small_plan(run.structure(), shape);
  plan.cache_frozen_prefix = true;
  run.transition_to(plan);
  ASSERT_EQ(cache.depth(), 3);
  const Tensors features{run.outputs(samples).at(2)};
  const std::vector<std::int64_t> ids{5, 4, 3, 2, 1, 0};
  cache.keep(ids, features);
  cache.keep(ids, features);
  Tensors other{features[0].clone()};
  other[0][4].neg_();
  try {
    cache.keep(ids, other);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "what is cached of layers 0-2 for sample 1 has other bits than what they compute "
                 "now");
  }
}

TEST(CachedRun, RefusesAPrefixThatLeavesTheFirstStage) {
  frazil::Run run(make_vit(small_config()), {}, 7, 3);
  PlanShape shape{.cuts = {{5}, {}}, .owned = {3, 3}};
  shape.mask = "00011";
  Plan plan = make_small_plan(run.structure(), shape);
  plan.cache_frozen_prefix = true;
  run.transition_to(plan);  // five layers fill the stage
  plan.mask = FreezeMask::parse("00001", "test", 0);
  try {
    run.transition_to(plan);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "the cached frozen prefix, layers 0-6, does not lie in the first stage of "
                 "pipeline 0 alone: stage 1 holds some of it");
  }
  EXPECT_EQ(run.plan().mask.text(), "00011");
}

}  // namespace
}  // namespace frazil
