// Writes a run configuration as JSON.
#include "exec/config/run_config.h"

#include <utility>

#include "exec/config/data_config_json.h"
#include "exec/config/run_config_names.h"
#include "planner/freezing/freeze_json.h"
#include "profiles/error.h"
#include "profiles/json_settings.h"

namespace frazil {
namespace {

std::string to_json(const std::vector<ParameterGroup>& groups) {
  std::string text;
  for (const ParameterGroup& group : groups) {
    text += (text.empty() ? "[" : ", ") +
            object_text({{"match", json_string(group.match)},
                         {"weight_decay", number_text(group.weight_decay)},
                         {"learning_rate_scale", number_text(group.learning_rate_scale)}});
  }
  return text + "]";
}

std::string to_json(const OptimizerConfig& optimizer) {
  Members members{{"kind", name_text(kOptimizerKinds, static_cast<std::size_t>(optimizer.kind))},
                  {"learning_rate", number_text(optimizer.learning_rate)},
                  {"weight_decay", number_text(optimizer.weight_decay)}};
  switch (optimizer.kind) {
    case OptimizerConfig::Kind::kAdamW:
      members.emplace_back("beta1", number_text(optimizer.beta1));
      members.emplace_back("beta2", number_text(optimizer.beta2));
      members.emplace_back("epsilon", number_text(optimizer.epsilon));
      break;
    case OptimizerConfig::Kind::kSgd:
      members.emplace_back("momentum", number_text(optimizer.momentum));
      break;
  }
  members.emplace_back("schedule",
                       name_text(kRateSchedules, static_cast<std::size_t>(optimizer.schedule)));
  members.emplace_back("warm_up_steps", std::to_string(optimizer.warm_up_steps));
  members.emplace_back("clip_norm", number_text(optimizer.clip_norm));
  if (!optimizer.groups.empty()) members.emplace_back("groups", to_json(optimizer.groups));
  return object_text(members);
}

std::string to_json(const AugmentationConfig& augmentation) {
  Members members{
      {"kind", name_text(kAugmentationKinds, static_cast<std::size_t>(augmentation.kind))},
      {augmentation.crops() ? "padding" : "pixels", std::to_string(augmentation.pixels)},
      {"variants", std::to_string(augmentation.variants)}};
  if (augmentation.crops()) members.emplace_back("flip", augmentation.flip ? "true" : "false");
  return object_text(members);
}

std::string to_json(const CacheConfig& cache) {
  return object_text(
      {{"kind", name_text(kCacheKinds, static_cast<std::size_t>(cache.kind))},
       {"memory_bytes", std::to_string(cache.memory.count)},
       {"disk_bytes", std::to_string(cache.disk.count)},
       {"folder", json_string(cache.folder)},
       {"precision", name_text(kPrecisions, static_cast<std::size_t>(cache.precision))},
       {"check", cache.check ? "true" : "false"},
       {"admission", name_text(kCacheAdmissions, static_cast<std::size_t>(cache.admission))},
       {"shared_by", name_text(kCacheSharing, static_cast<std::size_t>(cache.shared_by))},
       {"memory_bandwidth_bytes_per_second", std::to_string(cache.memory_link.bandwidth.count)},
       {"memory_latency_ns", std::to_string(cache.memory_link.latency.count())},
       {"disk_bandwidth_bytes_per_second", std::to_string(cache.disk_link.bandwidth.count)},
       {"disk_latency_ns", std::to_string(cache.disk_link.latency.count())}});
}

std::string to_json(const DriftConfig& drift) {
  return object_text({{"kind", name_text(kDriftKinds, static_cast<std::size_t>(drift.kind))},
                      {"window_steps", std::to_string(drift.window_steps)},
                      {"false_alarms", number_text(drift.false_alarms)}});
}

}  // namespace

std::string to_json(const RunConfig& config) {
  Members members{
      {"format", json_string(kRunFormat)},
      {"version", std::to_string(kRunVersion)},
      {"model", to_json(config.model)},
      {"data", to_json(config.data)},
      {"optimizer", to_json(config.optimizer)},
      {"epochs", std::to_string(config.epochs)},
      {"batch_size", std::to_string(config.batch_size)},
      {"micro_batch_size", std::to_string(config.micro_batch_size)},
      {"seed", seed_text(config.seed)},
      {"freeze", to_json(config.freeze)},
      {"reduction", name_text(kReductionModes, static_cast<std::size_t>(config.reduction))},
      {"message_order", name_text(kMessageOrders, static_cast<std::size_t>(config.message_order))}};
  if (!config.init_from.empty()) {
    members.emplace_back("init_from", json_string(config.init_from));
  }
  if (config.evaluation_epochs != 1) {
    members.emplace_back("evaluation_epochs", std::to_string(config.evaluation_epochs));
  }
  if (config.deadline_seconds) {
    members.emplace_back("deadline_seconds", number_text(*config.deadline_seconds));
  }
  if (config.local_statistics) members.emplace_back("local_statistics", "true");
  if (config.precision != Precision::kFp32) {
    members.emplace_back("precision", json_string(name_of(config.precision)));
  }
  if (config.batch_growth != BatchGrowth::kNone) {
    members.emplace_back("batch_growth",
                         name_text(kBatchGrowths, static_cast<std::size_t>(config.batch_growth)));
  }
  if (config.replan != Replanning::kTrajectory) {
    members.emplace_back("replan",
                         name_text(kReplannings, static_cast<std::size_t>(config.replan)));
  }
  if (config.augmentation.is_random()) {
    members.emplace_back("augmentation", to_json(config.augmentation));
  }
  if (config.cache.is_on()) members.emplace_back("cache", to_json(config.cache));
  if (config.drift.is_on()) members.emplace_back("drift", to_json(config.drift));
  std::string text;
  for (const auto& [key, value] : members) {
    text += (text.empty() ? "{\n  " : ",\n  ") + json_string(key) + ": " + value;
  }
  return text + "\n}\n";
}

}  // namespace frazil
