#include "tests/exec/support/cached_courses.h"

#include <algorithm>
#include <bit>

#include "exec/data/dataset.h"

namespace frazil {
namespace {

constexpr std::uint64_t kSeed = 7;

int most_devices(const std::vector<PlanShape>& epochs) {
  int most = 1;
  for (const PlanShape& shape : epochs) most = std::max(most, devices_of(shape));
  return most;
}

void put_in_force(Run& run, const PlanShape& shape, const CourseOptions& options) {
  Plan plan = make_small_plan(run.structure(), shape);
  plan.cache_frozen_prefix = options.cache.has_value();
  if (options.shared) {
    Stage& first = plan.pipelines.front().stages.front();
    first.devices.emplace_back(devices_of(shape));
    first.axis = *options.shared;
    if (first.axis == DeviceAxis::kSamples) plan.reduction = ReductionMode::kFast;
  }
  if (options.recomputes) {
    for (Pipeline& pipeline : plan.pipelines) {
      for (Stage& stage : pipeline.stages) stage.memory = MemoryPolicy::kRecompute;
    }
  }
  run.transition_to(plan);
}

}  // namespace

PrefixCacheOptions ample_memory() { return {.limits = {Bytes{1 << 24}, {}, {}}}; }

Course take_course(const std::vector<PlanShape>& epochs, const CourseOptions& options) {
  VitConfig config = small_config();
  config.dropout = 0.1;
  const Dataset data = make_synthetic(static_cast<int>(options.samples), 1, 1, 8, 10, kSeed);
  Run run(options.prepare(make_vit(config)), {.clip_norm = 1}, kSeed,
          most_devices(epochs) + (options.shared ? 1 : 0), {.devices = options.devices});
  run.measure({.layers = true});
  std::optional<PrefixCache> cache;
  if (options.cache) {
    cache.emplace(run.model(), run.outputs(data.train.narrow(0, 1)), options.samples, options.files,
                  *options.cache);
    run.attach(*cache);
  }
  Course course;
  Step step = 0;
  for (std::size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    put_in_force(run, epochs[epoch], options);
    const auto order = epoch_order(options.samples, kSeed, static_cast<int>(epoch));
    for (std::int64_t first = 0; first < options.samples; first += kCourseBatch, ++step) {
      const auto count = std::min<std::int64_t>(kCourseBatch, options.samples - first);
      const auto micro_batches =
          gather_micro_batches(data.train, order, first, count, kSmallMicroBatch);
      const StepResult result = run.step(step, 3e-3, micro_batches, false, {},
                                         {order.begin() + first, order.begin() + first + count});
      course.losses.push_back(std::bit_cast<std::uint64_t>(result.loss));
      options.after_step();
    }
    std::vector<std::int64_t>& forwards = course.forwards.emplace_back(kSmallLayers);
    for (const LayerSample& sample : run.take_layer_samples()) {
      if (sample.phase == LayerPhase::kForward) forwards[sample.layer.index()] += sample.samples;
    }
  }
  course.weights = run.weight_hash();
  if (cache) {
    course.counts = cache->counts();
    course.micro_batches = cache->prefix_counts();
    course.warnings = cache->take_warnings();
  }
  return course;
}

}  // namespace frazil
