// A run takes another shape before every step. Over an epoch its layers are still fed every sample
// once, and a cache of the frozen prefix is filled once per sample and depth.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "exec/cache/prefix_cache.h"
#include "exec/data/dataset.h"
#include "exec/run/run.h"
#include "planner/plan/activity.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

// Of the shapes that are drawn many are equal. Fewer different ones than this would move too
// little.
constexpr std::size_t kFewShapes = 20;
constexpr int kReshapedDevices = 4;
constexpr std::uint64_t kReshapedSeed = 7;
// The last step of an epoch has 14 samples, its last micro-batch 2.
constexpr int kBatch = 18;
constexpr std::int64_t kTrainSamples = 50;
constexpr std::int64_t kTestSamples = 13;
constexpr Step kStepsPerEpoch = 3;
constexpr int kEpochs = 18;
constexpr Step kReshapedSteps = kEpochs * kStepsPerEpoch;
constexpr float kPixelsPerId = 128;  // a power of two, so that numbers come back

using SampleCounts = std::map<std::int64_t, int>;  // by sample

// Notes what layers were fed since `take` was last called.
class Fed {
 public:
  struct Seen {
    SampleCounts embedded;                                                     // by their pixels
    SampleCounts judged;                                                       // by their labels
    std::vector<std::int64_t> rows = std::vector<std::int64_t>(kSmallLayers);  // by layer
  };

  void embed(const at::Tensor& images) {
    const at::Tensor pixels = images.flatten(1).select(1, 0).contiguous();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::int64_t i = 0; i < pixels.size(0); ++i) {
      ++seen_.embedded[std::lround(pixels.const_data_ptr<float>()[i] * kPixelsPerId)];
    }
  }
  void judge(const at::Tensor& labels) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::int64_t i = 0; i < labels.size(0); ++i) {
      ++seen_.judged[labels.const_data_ptr<std::int64_t>()[i]];
    }
  }
  void count(std::size_t layer, std::int64_t rows) {
    const std::lock_guard<std::mutex> lock(mutex_);
    seen_.rows[layer] += rows;
  }
  Seen take() { return std::exchange(seen_, {}); }

 private:
  std::mutex mutex_;
  Seen seen_;
};

// Makes a model that notes what it is fed, with one class for every sample.
ModelSpec make_watched(Fed& fed) {
  VitConfig config = small_config();
  config.dropout = 0.1;
  config.classes = kTrainSamples;
  ModelSpec model = make_vit(config);
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    model.layers[l].forward = [l, &fed, inner = model.layers[l].forward](const LayerCall& call) {
      if (l == 0) fed.embed(call.inputs.at(0));
      fed.count(l, call.inputs.at(0).size(0));
      return inner(call);
    };
  }
  model.layers.back().loss = [&fed, inner = model.layers.back().loss](const Tensors& outputs,
                                                                      const at::Tensor& labels) {
    fed.judge(labels);
    return inner(outputs, labels);
  };
  return model;
}

// Makes samples whose first pixel and whose label are their number.
Samples make_numbered(std::int64_t count) {
  Samples samples =
      make_synthetic(static_cast<int>(count), 1, 1, 8, static_cast<int>(count), kReshapedSeed)
          .train.whole();
  const at::Tensor numbers = at::arange(count, at::kLong);
  samples.inputs[0].flatten(1).select(1, 0).copy_(numbers.to(at::kFloat) / kPixelsPerId);
  samples.labels = numbers;
  return samples;
}

SampleCounts once_each(std::int64_t count) {
  SampleCounts all;
  for (std::int64_t id = 0; id < count; ++id) all[id] = 1;
  return all;
}

int draw(std::mt19937& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

// Draws cuts such that the first stage holds `depth` layers at least.
std::vector<LayerId> draw_cuts(std::mt19937& random, int stages, int depth) {
  std::vector<int> places;
  for (int l = std::max(depth, 1); l < kSmallLayers; ++l) places.push_back(l);
  std::shuffle(places.begin(), places.end(), random);
  places.resize(std::min(places.size(), static_cast<std::size_t>(stages - 1)));
  std::sort(places.begin(), places.end());
  return {places.begin(), places.end()};
}

// Gives one micro-batch at least to each pipeline, and the other micro-batches to any of them.
std::vector<std::vector<MicroBatches>> draw_owners(std::mt19937& random, int pipelines, int all) {
  std::vector<int> owner_of(static_cast<std::size_t>(all));
  for (int m = 0; m < all; ++m) {
    owner_of[static_cast<std::size_t>(m)] = m < pipelines ? m : draw(random, 0, pipelines - 1);
  }
  std::shuffle(owner_of.begin(), owner_of.end(), random);
  std::vector<std::vector<MicroBatches>> owned(static_cast<std::size_t>(pipelines));
  for (int m = 0; m < all; ++m) {
    auto& own = owned[static_cast<std::size_t>(owner_of[static_cast<std::size_t>(m)])];
    if (!own.empty() && own.back().last.value == m - 1) {
      own.back().last = MicroBatchId{m};
    } else {
      own.push_back({MicroBatchId{m}, MicroBatchId{m}});
    }
  }
  return owned;
}

// Draws up to four pipelines of any lengths on up to four devices, in any order.
Plan draw_plan(std::mt19937& random, const ModelProfile& structure, const FreezeMask& mask,
               bool caches) {
  Plan plan = make_small_plan(structure, {});
  plan.mask = mask;
  plan.cache_frozen_prefix = caches;
  const int depth = caches ? find_activity(structure, plan).cached : 0;
  std::vector<DeviceId> devices;
  for (int d = 0; d < kReshapedDevices; ++d) devices.emplace_back(d);
  std::shuffle(devices.begin(), devices.end(), random);
  plan.pipelines.clear();
  const int pipelines = draw(random, 1, kReshapedDevices);
  const auto owners = draw_owners(random, pipelines, plan.micro_batches());
  auto next = devices.begin();
  for (int p = 0; p < pipelines; ++p) {
    const auto left = static_cast<int>(devices.end() - next) - (pipelines - 1 - p);
    const std::vector<LayerId> cuts = draw_cuts(random, draw(random, 1, left), depth);
    const auto end = next + static_cast<std::ptrdiff_t>(cuts.size()) + 1;
    plan.pipelines.push_back(make_pipeline(kSmallLayers, cuts, {next, end}, {}));
    plan.pipelines.back().micro_batches = owners[static_cast<std::size_t>(p)];
    next = end;
  }
  using enum ScheduleKind;
  const std::vector<ScheduleKind> kinds{kOneForwardOneBackward, kGpipe, kZbH1};
  plan.schedule = NamedSchedule{.kind = kinds[random() % kinds.size()], .in_flight = {}};
  return plan;
}

struct ReshapedCourse {
  std::vector<std::uint64_t> losses;       // bits, by step
  std::vector<std::uint64_t> evaluations;  // bits of loss and accuracy, by epoch
  std::uint64_t weights = 0;
  std::vector<Fed::Seen> epochs;    // what was fed in training
  std::vector<Fed::Seen> tests;     // and in evaluation
  std::vector<FeatureCounts> kept;  // what the cache had done by the end of each epoch
  std::set<std::string> shapes;
};

struct ReshapedOptions {
  bool moves = true;
  bool caches = false;
  unsigned seed = 0;  // of the shapes
};

// `masks` has one mask for each step.
ReshapedCourse take_course(const std::vector<FreezeMask>& masks, const ReshapedOptions& options) {
  Fed fed;
  Run run(make_watched(fed), {.clip_norm = 1}, kReshapedSeed, kReshapedDevices);
  const Samples train = make_numbered(kTrainSamples);
  const Samples test = make_numbered(kTestSamples);
  const FileSystem files = real_file_system();
  std::optional<PrefixCache> cache;
  if (options.caches) {
    cache.emplace(run.model(), run.outputs(narrow(train, 0, 1)), kTrainSamples, files,
                  PrefixCacheOptions{.limits = {Bytes{1 << 24}, {}, {}}});
    run.attach(*cache);
    (void)fed.take();
  }
  std::mt19937 random(options.seed);
  ReshapedCourse course;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<std::int64_t> order = epoch_order(kTrainSamples, kReshapedSeed, epoch);
    for (Step s = 0; s < kStepsPerEpoch; ++s) {
      const Step step = epoch * kStepsPerEpoch + s;
      Plan plan =
          draw_plan(random, run.structure(), masks[static_cast<std::size_t>(step)], options.caches);
      if (!options.moves) {
        plan = make_small_plan(run.structure(), {});
        plan.mask = masks[static_cast<std::size_t>(step)];
      }
      course.shapes.insert(summarize(plan));
      run.transition_to(plan);
      const std::int64_t first = s * kBatch;
      const std::int64_t count = std::min<std::int64_t>(kBatch, kTrainSamples - first);
      const StepResult result =
          run.step(step, 3e-3, gather_micro_batches(train, order, first, count, kSmallMicroBatch),
                   false, {}, {order.begin() + first, order.begin() + first + count});
      course.losses.push_back(std::bit_cast<std::uint64_t>(result.loss));
    }
    course.epochs.push_back(fed.take());
    const Run::Evaluation evaluation = run.evaluate(test, kSmallMicroBatch);
    course.evaluations.push_back(std::bit_cast<std::uint64_t>(evaluation.loss));
    course.evaluations.push_back(std::bit_cast<std::uint64_t>(evaluation.accuracy.value()));
    course.tests.push_back(fed.take());
    if (cache) course.kept.push_back(cache->counts());
  }
  course.weights = run.weight_hash();
  return course;
}

class ReshapedEpochs : public testing::Test {
 protected:
  ReshapedEpochs() { RecordProperty("seed", static_cast<int>(seed_)); }

  // Freezes `frozen` blocks from the front on.
  static FreezeMask freeze(int frozen) {
    FreezeMask mask = FreezeMask::all_active(kSmallBlocks);
    for (int b = 0; b < frozen; ++b) mask.set_active(BlockId{b}, false);
    return mask;
  }
  // Makes a mask for each epoch, by how many blocks are frozen.
  static std::vector<FreezeMask> by_epoch(const std::vector<int>& frozen) {
    std::vector<FreezeMask> masks;
    for (const int blocks : frozen) masks.insert(masks.end(), kStepsPerEpoch, freeze(blocks));
    return masks;
  }
  // Draws any blocks but the head, anew at every step.
  std::vector<FreezeMask> draw_masks() const {
    std::mt19937 random(seed_ + 1);
    std::vector<FreezeMask> masks;
    for (Step step = 0; step < kReshapedSteps; ++step) {
      FreezeMask mask = freeze(0);
      for (int b = 0; b + 1 < kSmallBlocks; ++b) mask.set_active(BlockId{b}, random() % 2 == 0);
      masks.push_back(mask);
    }
    return masks;
  }

  static void expect_all_evaluated(const ReshapedCourse& course) {
    for (const Fed::Seen& test : course.tests) {
      EXPECT_EQ(test.embedded, once_each(kTestSamples));
      EXPECT_EQ(test.judged, once_each(kTestSamples));
    }
  }
  static void expect_same_bits(const ReshapedCourse& course, const ReshapedCourse& other) {
    EXPECT_EQ(course.losses, other.losses);
    EXPECT_EQ(course.evaluations, other.evaluations);
    EXPECT_EQ(course.weights, other.weights);
  }

  unsigned seed_ = std::random_device{}();
};

TEST_F(ReshapedEpochs, FeedEverySampleOnceAndEvaluateAll) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const std::vector<FreezeMask> masks = draw_masks();
  const ReshapedCourse course = take_course(masks, {.seed = seed_});
  EXPECT_GE(course.shapes.size(), kFewShapes) << "of " << kReshapedSteps << " re-shapings";
  for (const Fed::Seen& epoch : course.epochs) {
    EXPECT_EQ(epoch.embedded, once_each(kTrainSamples));
    EXPECT_EQ(epoch.judged, once_each(kTrainSamples));
    EXPECT_EQ(epoch.rows, std::vector<std::int64_t>(kSmallLayers, kTrainSamples));
  }
  expect_all_evaluated(course);
  expect_same_bits(course, take_course(masks, {.moves = false}));
}

// The owner of a micro-batch finds what another owner has cached: over all re-shapings a sample is
// filled once per depth, and a frozen layer's forward runs for it once.
TEST_F(ReshapedEpochs, FillACacheOncePerSampleAndDepth) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const std::vector<int> frozen{0, 1, 1, 2, 2, 2, 3, 3, 0, 2, 2, 3, 3, 1, 1, 0, 3, 3};
  ASSERT_EQ(frozen.size(), static_cast<std::size_t>(kEpochs));
  const std::vector<FreezeMask> masks = by_epoch(frozen);
  const ReshapedCourse course = take_course(masks, {.caches = true, .seed = seed_});
  EXPECT_GE(course.shapes.size(), kFewShapes) << "of " << kReshapedSteps << " re-shapings";
  std::int64_t fills = 0;
  for (std::size_t e = 0; e < frozen.size(); ++e) {
    SCOPED_TRACE("epoch " + std::to_string(e));
    // The embedding is one layer, each block after it two.
    const auto layers_of = [](int blocks) { return blocks == 0 ? 0 : 2 * blocks - 1; };
    const int depth = layers_of(frozen[e]);
    const int before = e == 0 ? 0 : layers_of(frozen[e - 1]);
    // A deeper prefix begins where the one before ended; a thaw leaves nothing of an earlier
    // prefix.
    const int begin = before <= depth ? before : 0;
    for (int l = 0; l < kSmallLayers; ++l) {
      const bool runs = l >= depth || l >= begin;
      EXPECT_EQ(course.epochs[e].rows[static_cast<std::size_t>(l)], runs ? kTrainSamples : 0)
          << "layer " << l;
    }
    EXPECT_EQ(course.epochs[e].judged, once_each(kTrainSamples));
    EXPECT_EQ(course.epochs[e].embedded, begin == 0 ? once_each(kTrainSamples) : SampleCounts{});
    if (depth > 0 && depth != before) fills += kTrainSamples;
    EXPECT_EQ(course.kept[e].stored, fills) << "no sample is filled again";
  }
  expect_all_evaluated(course);
  expect_same_bits(course, take_course(masks, {.moves = false}));
}

}  // namespace
}  // namespace frazil
