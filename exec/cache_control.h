#pragma once
// The cache of the frozen prefix in a run: made as the configuration says, told which samples a
// step works on, asked what it did.

#include <optional>
#include <string>
#include <vector>

#include "exec/cache/cache_report.h"
#include "exec/cache/prefix_cache.h"
#include "exec/run.h"
#include "exec/run_config.h"
#include "planner/plan.h"
#include "profiles/model_profile.h"

namespace frazil {

// The plan with its frozen prefix cached, where there is one and its stages allow it; else none.
std::optional<Plan> with_cached_prefix(const Plan& plan, const ModelProfile& profile);

class CacheControl {
 public:
  // Of the samples of the training part. `config` and `run` outlive it. Throws InputError where the
  // file on disk cannot be made, and of a durable run whose cache rounds: what was cached before it
  // ended would be missing when it goes on.
  CacheControl(const CacheConfig& config, Run& run, const Samples& samples, bool is_durable);

  // Of `count` samples from order[first] on; none where nothing is cached.
  std::vector<std::int64_t> list_samples(const std::vector<std::int64_t>& order, std::int64_t first,
                                         std::int64_t count) const;
  // Reads ahead for a step on `count` samples from order[first] on, in micro-batches of `size`.
  void expect(const std::vector<std::int64_t>& order, std::int64_t first, std::int64_t count,
              int size);
  // What is cached under the plan that has come into force, or why nothing is, to go on with after
  // a sentence; empty where there is nothing to say.
  std::string describe(const Plan& plan, const ModelProfile& profile) const;
  // What has gone wrong since the last call; the first time also that not all samples fit.
  std::vector<std::string> take_warnings();
  std::optional<CacheReport> report() const;

 private:
  const CacheConfig& config_;
  FileSystem files_ = real_file_system();
  std::optional<PrefixCache> cache_;
  std::string room_warning_;
};

}  // namespace frazil
