#include "exec/cache_control.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "planner/activity.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Layers that can be cached; throws InfeasibleError as find_activity does.
int count_cached(Plan plan, const ModelProfile& profile) {
  plan.cache_frozen_prefix = true;
  return find_activity(profile, plan).cached;
}

}  // namespace

std::optional<Plan> with_cached_prefix(const Plan& plan, const ModelProfile& profile) {
  try {
    if (count_cached(plan, profile) == 0) return std::nullopt;
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
  Plan cached = plan;
  cached.cache_frozen_prefix = true;
  return cached;
}

CacheControl::CacheControl(const CacheConfig& config, Run& run, const Samples& samples,
                           bool is_durable)
    : config_(config) {
  if (!config.is_on()) return;
  if (is_durable && config.precision == FeaturePrecision::kBfloat16) {
    throw InputError("run configuration", 0, "a cache in bfloat16, which rounds",
                     "one in float32 where the run keeps checkpoints");
  }
  if (config.disk.count > 0 && !config.folder.empty() &&
      !std::filesystem::is_directory(config.folder)) {
    throw InputError("run configuration", 0, "a cache in " + config.folder + ", no folder",
                     "a folder that is there");
  }
  std::filesystem::path folder = config.folder;
  if (folder.empty()) folder = std::filesystem::temp_directory_path();
  const PrefixCacheOptions options{.limits = {config.memory, config.disk, folder},
                                   .precision = config.precision,
                                   .checks = config.check};
  cache_.emplace(run.model(), run.outputs(narrow(samples, 0, 1)), samples.count(), files_, options);
  run.attach(*cache_);
  room_warning_ = warn_of_room(cache_->room(), samples.count());
}

std::vector<std::int64_t> CacheControl::list_samples(const std::vector<std::int64_t>& order,
                                                     std::int64_t first, std::int64_t count) const {
  std::vector<std::int64_t> samples;
  if (!cache_ || cache_->depth() == 0) return samples;
  for (std::int64_t i = first; i < first + count; ++i) {
    samples.push_back(order[static_cast<std::size_t>(i) % order.size()]);
  }
  return samples;
}

void CacheControl::expect(const std::vector<std::int64_t>& order, std::int64_t first,
                          std::int64_t count, int size) {
  const std::vector<std::int64_t> samples = list_samples(order, first, count);
  if (samples.empty()) return;
  std::vector<ReadAhead::SampleIds> micro_batches;
  for (std::int64_t begin = 0; begin < count; begin += size) {
    const std::int64_t end = std::min<std::int64_t>(begin + size, count);
    micro_batches.emplace_back(samples.begin() + begin, samples.begin() + end);
  }
  cache_->expect(std::move(micro_batches));
}

std::string CacheControl::describe(const Plan& plan, const ModelProfile& profile) const {
  if (!cache_) return "";
  if (plan.cache_frozen_prefix && cache_->depth() > 0) {
    const bool rounds = config_.precision == FeaturePrecision::kBfloat16;
    return "; what " + name_layers(cache_->depth()) + " put out is cached, " +
           std::to_string(cache_->bytes_per_sample().count) + " bytes a sample in " +
           std::string(name_of(config_.precision)) +
           (rounds ? ", which rounds: losses are not those of a run without a cache" : "");
  }
  try {
    (void)count_cached(plan, profile);
  } catch (const InfeasibleError& error) {
    return std::string("; nothing is cached: ") + error.what();
  }
  return "";
}

std::vector<std::string> CacheControl::take_warnings() {
  if (!cache_) return {};
  std::vector<std::string> warnings = cache_->take_warnings();
  if (!room_warning_.empty()) warnings.push_back(std::exchange(room_warning_, {}));
  return warnings;
}

std::optional<CacheReport> CacheControl::report() const {
  if (!cache_) return std::nullopt;
  return CacheReport{.depth = cache_->depth(),
                     .bytes_per_sample = cache_->bytes_per_sample(),
                     .precision = config_.precision,
                     .counts = cache_->counts(),
                     .micro_batches = cache_->prefix_counts(),
                     .in_memory = cache_->used(StoreTier::kMemory),
                     .on_disk = cache_->used(StoreTier::kDisk)};
}

}  // namespace frazil
