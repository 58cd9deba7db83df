#pragma once
// Runs over epochs whose masks and plans change, with and without a cache of the frozen prefix.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/cache/prefix_cache.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {

// Three steps an epoch over a small vision transformer; plans hold 6 micro-batches of 3 samples.
inline constexpr int kCourseBatch = 18;
inline constexpr std::int64_t kCourseSamples = 3 * kCourseBatch;

struct CourseOptions {
  std::optional<PrefixCacheOptions> cache = std::nullopt;
  std::int64_t samples = kCourseSamples;
  bool recomputes = false;  // every stage
  // If set, the first stage is shared with one more device, the last, along this axis.
  std::optional<DeviceAxis> shared = std::nullopt;
  FileSystem files = real_file_system();
  DeviceChoice devices = {};
  std::function<ModelSpec(ModelSpec)> prepare = [](ModelSpec model) { return model; };
  std::function<void()> after_step = [] {};
};

struct Course {
  std::vector<std::uint64_t> losses;  // their bits
  std::uint64_t weights = 0;
  // Samples that the layer's forward has run for, by epoch and layer.
  std::vector<std::vector<std::int64_t>> forwards;
  FeatureCounts counts = {};
  PrefixCounts micro_batches = {};
  std::vector<std::string> warnings = {};
};

// Takes an epoch under each plan, in an order of samples of its own.
Course take_course(const std::vector<PlanShape>& epochs, const CourseOptions& options);

// Gives room in memory for all that a course caches.
PrefixCacheOptions ample_memory();

}  // namespace frazil
