// A cache with room for some samples spares the rows of each cached sample, and changes no bit.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "exec/cache/cache_report.h"
#include "exec/data/dataset.h"
#include "exec/models/boundary.h"
#include "tests/exec/models/model_plans.h"
#include "tests/exec/support/cached_courses.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

using enum ScheduleKind;

constexpr std::int64_t kFeatureBytes = 17 * 32 * 4;  // bytes of a sample of the small transformer

PrefixCacheOptions room_for(std::int64_t in_memory, std::int64_t on_disk = 0) {
  return {.limits = {Bytes{in_memory * kFeatureBytes}, Bytes{on_disk * kFeatureBytes},
                     std::filesystem::temp_directory_path()}};
}

std::vector<PlanShape> under_masks(PlanShape shape, const std::vector<std::string>& masks) {
  std::vector<PlanShape> epochs;
  for (const std::string& mask : masks) {
    shape.mask = mask;
    epochs.push_back(shape);
  }
  return epochs;
}

// The frozen prefix deepens, thaws and deepens again, in each case with rows of the depth before.
const std::vector<std::string> kPartlyCachedMasks{"01111", "01111", "00111", "00111",
                                                  "00111", "00011", "00011", "11111",
                                                  "01111", "01111", "00011", "00011"};

// What each of these courses must equal: on one device, without a cache.
const Course& uncached_course() {
  static const Course plain = take_course(under_masks({}, kPartlyCachedMasks), {});
  return plain;
}

TEST(PartlyCachedRun, HasTheBitsOfAPlainOneWhateverFits) {
  const std::vector<PlanShape> shapes{{},
                                      {.schedule = kGpipe, .cuts = {{5}}},
                                      {.cuts = {{}, {}}, .owned = {3, 3}},
                                      {.schedule = kZbH2, .cuts = {{6}, {5}}, .owned = {3, 3}}};
  for (const PlanShape& shape : shapes) {
    const std::vector<PlanShape> epochs = under_masks(shape, kPartlyCachedMasks);
    // The rooms are 20, 50 and 80 % of 54 samples.
    for (const auto& [in_memory, on_disk] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 11}, {14, 13}, {43, 0}}) {
      SCOPED_TRACE(std::to_string(in_memory + on_disk) + " samples on " +
                   std::to_string(devices_of(shape)) + " devices");
      if (kThreadsAreWatched && (in_memory > 0) != (on_disk > 0)) continue;
      const Course course = take_course(epochs, {.cache = room_for(in_memory, on_disk)});
      EXPECT_EQ(course.losses, uncached_course().losses);
      EXPECT_EQ(course.weights, uncached_course().weights);
      EXPECT_GT(course.counts.found, 3 * (in_memory + on_disk));
      EXPECT_GT(course.counts.found_before, 0);
      EXPECT_GT(course.micro_batches.parts, 0);
    }
  }
}

TEST(PartlyCachedRun, HasTheSameBitsWithAShortLastBatch) {
  const std::vector<PlanShape> epochs = under_masks({.cuts = {{5}}}, kPartlyCachedMasks);
  const Course course = take_course(epochs, {.cache = room_for(30), .samples = 50});
  const Course uncached = take_course(epochs, {.samples = 50});
  EXPECT_EQ(course.losses, uncached.losses);
  EXPECT_EQ(course.weights, uncached.weights);
  EXPECT_GT(course.micro_batches.parts, 0);
}

TEST(PartlyCachedRun, HasTheSameBitsWhereStagesRecomputeOrDevicesShareTheFirst) {
  const std::vector<PlanShape> epochs = under_masks({.cuts = {{5}}}, kPartlyCachedMasks);
  std::vector<CourseOptions> courses(3);
  courses[0].recomputes = true;
  courses[1].shared = DeviceAxis::kData;
  courses[2].shared = DeviceAxis::kSamples;
  for (CourseOptions& options : courses) {
    const Course uncached = take_course(epochs, options);
    options.cache = room_for(40);
    const Course course = take_course(epochs, options);
    EXPECT_EQ(course.losses, uncached.losses);
    EXPECT_EQ(course.weights, uncached.weights);
    EXPECT_GT(course.counts.found, 0);
  }
}

// The rows are recounted from the orders of the epochs: the samples that came first have got the
// room.
TEST(PartlyCachedRun, RunsFrozenLayersForTheMissingRowsAlone) {
  constexpr int kEpochs = 8;
  constexpr std::int64_t kRoom = 43;
  const std::vector<PlanShape> epochs = under_masks({}, std::vector<std::string>(kEpochs, "00111"));
  const Course course = take_course(epochs, {.cache = room_for(kRoom)});
  const auto first_order = epoch_order(kCourseSamples, 7, 0);
  const std::set<std::int64_t> cached(first_order.begin(), first_order.begin() + kRoom);
  FeatureCounts counts{.stored = kRoom, .missed = kCourseSamples};
  counts.turned_away = kCourseSamples - kRoom;
  PrefixCounts micro_batches{.asked = kCourseSamples / kSmallMicroBatch};
  std::map<std::size_t, int> trials;  // by missing rows
  for (int epoch = 1; epoch < kEpochs; ++epoch) {
    const auto order = epoch_order(kCourseSamples, 7, epoch);
    std::int64_t forwards = 0;
    for (auto first = order.begin(); first != order.end(); first += kSmallMicroBatch) {
      const auto missing = static_cast<std::size_t>(
          std::count_if(first, first + kSmallMicroBatch,
                        [&](std::int64_t sample) { return !cached.contains(sample); }));
      counts.missed += static_cast<std::int64_t>(missing);
      counts.turned_away += static_cast<std::int64_t>(missing);
      ++micro_batches.asked;
      forwards += static_cast<std::int64_t>(missing);
      if (missing == 0) {
        ++micro_batches.whole;
      } else if (missing < kSmallMicroBatch && ++trials[missing] <= BatchSizes::kTrials) {
        forwards += kSmallMicroBatch;
      } else if (missing < kSmallMicroBatch) {
        ++micro_batches.parts;
      }
    }
    counts.found += kRoom;
    for (std::size_t layer = 0; layer < 3; ++layer) {
      EXPECT_EQ(course.forwards[static_cast<std::size_t>(epoch)][layer], forwards)
          << "epoch " << epoch << ", layer " << layer;
    }
  }
  EXPECT_EQ(course.counts, counts);
  EXPECT_EQ(course.micro_batches, micro_batches);
  EXPECT_GT(micro_batches.parts, 20);
  EXPECT_GT(micro_batches.whole, 20);
}

// Joins all samples of a step, one after another.
Samples join(const std::vector<Samples>& micro_batches) {
  Samples all;
  Tensors labels;
  for (std::size_t i = 0; i < micro_batches.front().inputs.size(); ++i) {
    Tensors pieces;
    for (const Samples& some : micro_batches) pieces.push_back(some.inputs[i]);
    all.inputs.push_back(at::cat(pieces));
  }
  for (const Samples& some : micro_batches) labels.push_back(some.labels);
  all.labels = at::cat(labels);
  return all;
}

struct Answer {
  std::vector<double> losses;
  std::uint64_t weights = 0;
  int depth = 0;
  PrefixCounts micro_batches = {};
};

constexpr std::int64_t kSamples = 24;

// Returns the bytes that a sample's features take at the depth where they are the most, in records
// of 64.
std::int64_t largest_record(const ModelSpec& model, const std::vector<Tensors>& outputs) {
  std::int64_t largest = 0;
  for (int depth = 1; depth < static_cast<int>(model.layers.size()); ++depth) {
    std::int64_t bytes = 0;
    for (const LayerOutput& crossing : find_boundary(model, depth)) {
      bytes += static_cast<std::int64_t>(outputs[crossing.layer.index()][crossing.output].nbytes());
    }
    largest = std::max(largest, (bytes + 63) / 64 * 64);
  }
  return largest;
}

// Takes eight epochs of two steps, in an order of their own each, with room for three quarters of
// the samples.
Answer train(const TestModel& model, const std::string& mask, bool caches) {
  frazil::Run run(model.spec, clipped_adamw(), 7, 1);
  Plan plan = make_plan(model, {.mask = mask});
  plan.cache_frozen_prefix = caches;
  const Samples samples = join(model.samples({.seed = 3, .micro_batches = kSamples / 3}));
  const FileSystem files = real_file_system();
  const auto outputs = run.outputs(narrow(samples, 0, 1));
  const Bytes room{kSamples * 3 / 4 * largest_record(model.spec, outputs)};
  PrefixCache cache(model.spec, outputs, kSamples, files, {.limits = {room, {}, {}}});
  EXPECT_EQ(cache.room(), kSamples * 3 / 4);
  run.attach(cache);
  run.transition_to(plan);
  Answer answer;
  for (int step = 0; step < 16; ++step) {
    const auto order = epoch_order(kSamples, 7, step / 2);
    const std::int64_t first = step % 2 * plan.batch_size;
    const auto micro_batches = gather_micro_batches(samples, order, first, plan.batch_size, 3);
    const std::vector<std::int64_t> ids(order.begin() + first,
                                        order.begin() + first + plan.batch_size);
    answer.losses.push_back(run.step(step, 1e-2, micro_batches, false, {}, ids).loss);
  }
  answer.weights = run.weight_hash();
  answer.depth = cache.depth();
  answer.micro_batches = cache.prefix_counts();
  return answer;
}

TEST(PartlyCachedRun, OfEveryModelHasTheBitsOfOneWithoutACache) {
  int in_part = 0;
  for (const TestModel& model : {encoder_model(), decoder_model(), uneven_mlp_model(),
                                 small_cnn_model(), small_vgg_model(), distillation_model()}) {
    for (std::size_t frozen = 1; frozen < model.mask.size(); ++frozen) {
      std::string mask = model.mask;
      std::fill_n(mask.begin(), frozen, '0');
      if (mask.find('1') == std::string::npos) continue;
      SCOPED_TRACE(model.spec.name + ", " + mask);
      const Answer cached = train(model, mask, true);
      const Answer uncached = train(model, mask, false);
      EXPECT_EQ(cached.losses, uncached.losses);
      EXPECT_EQ(cached.weights, uncached.weights);
      in_part += cached.micro_batches.parts > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(in_part, 8);
}

TEST(CacheReport, WarnsWhereNotAllSamplesFit) {
  EXPECT_EQ(warn_of_room(100, 100), "");
  EXPECT_EQ(warn_of_room(80, 100),
            "the cache has room for the features of 80 of 100 samples; those of the others are "
            "computed again in every epoch");
}

}  // namespace
}  // namespace frazil
