#include "exec/config/configured_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "exec/disk/hashes.h"
#include "exec/disk/tensor_file.h"
#include "exec/models/local_statistics.h"
#include "exec/models/model_precision.h"
#include "exec/models/untrainable_blocks.h"
#include "exec/state/optimizer.h"
#include "profiles/error.h"

namespace frazil {

RunOptions run_options(const RunConfig& config, const DeviceChoice& devices) {
  RunOptions options{.order = config.message_order, .devices = devices};
  options.predicts_deadline = !config.deadline_seconds;
  if (config.deadline_seconds) {
    const std::chrono::duration<double> deadline(*config.deadline_seconds);
    options.deadline = std::max(std::chrono::round<Duration>(deadline), Duration{1});
  }
  return options;
}

LoaderConfig loader_config(const RunConfig& config) {
  return {.micro_batch_size = config.micro_batch_size,
          .seed = config.seed,
          .augmentation = config.augmentation};
}

PrefixCacheOptions cache_options(const RunConfig& config, bool over_processes) {
  const CacheConfig& cache = config.cache;
  const std::optional<int> variants = count_variants(config.augmentation);
  ENSURE(cache.is_on() && variants, "as many draws of each sample as the configuration names");
  std::filesystem::path folder = cache.folder;
  if (folder.empty()) {
    folder = std::filesystem::temp_directory_path();
  } else if (cache.disk.count > 0 && !std::filesystem::is_directory(folder)) {
    throw InputError("run configuration", 0, "a cache in " + cache.folder + ", no folder",
                     "a folder that is there");
  }
  return {.limits = {cache.memory, cache.disk, folder},
          .precision = cache.precision,
          .checks = cache.check,
          .variants = *variants,
          .shares = over_processes && cache.shared_by == CacheConfig::SharedBy::kHost};
}

ModelSpec make_model(const RunConfig& config) {
  ModelSpec model = with_precision(make_model(config.model), config.precision);
  if (!config.init_from.empty()) start_from(TensorFile(config.init_from), config.model, model);
  if (config.freeze.freeze_untrainable) model = evaluate_untrainable(std::move(model));
  return config.local_statistics ? with_local_statistics(std::move(model)) : model;
}

std::map<std::string, std::string> hash_files(const RunConfig& config) {
  std::map<std::string, std::string> hashes;
  for (const ChosenFile& file : find_files(config.model)) {
    hashes[file.key + ".file_hash"] = to_hex(file.model->hash);
  }
  if (const std::string weights = teacher_weights(config.model); !weights.empty()) {
    hashes["model.teacher_weights.hash"] = to_hex(TensorFile(weights).hash());
  }
  if (!config.init_from.empty()) {
    hashes["init_from.hash"] = to_hex(TensorFile(config.init_from).hash());
  }
  return hashes;
}

ModelProfile structure_of(const RunConfig& config) {
  return make_structure(make_model(config), optimizer_bytes_per_parameter_byte(config.optimizer));
}

}  // namespace frazil
