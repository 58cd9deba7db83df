#include "exec/config/run_config.h"

#include <algorithm>
#include <vector>

#include "exec/config/data_config_json.h"
#include "exec/config/run_config_names.h"
#include "planner/freezing/freeze_json.h"
#include "profiles/error.h"
#include "profiles/json_settings.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr int kLargestSteps = 1'000'000'000;

constexpr int kLargestShift = 1'000;
constexpr int kMostVariants = 1'000'000;

// Takes "schedule", or the boolean "cosine" that stands for two of its values.
RateSchedule take_schedule(JsonFields& fields) {
  const Given schedule = fields.optional("schedule");
  const Given cosine = fields.optional("cosine");
  if (schedule && cosine) {
    cosine->fail(
        "\"cosine\" beside \"schedule\"",
        "one of them: \"cosine\": true is \"schedule\": \"cosine\", and false \"constant\"");
  }
  if (cosine) return cosine->boolean() ? RateSchedule::kCosine : RateSchedule::kConstant;
  return static_cast<RateSchedule>(read_name(schedule, kRateSchedules));
}

ParameterGroup parse_group(const JsonCursor& object, double weight_decay) {
  ParameterGroup group{.match = "", .weight_decay = weight_decay};
  JsonFields fields(object);
  const JsonCursor match = fields.required("match");
  group.match = match.text();
  if (group.match.empty()) match.fail(match.describe(), "a pattern of parameters' names");
  take(fields, "weight_decay", Range::kNotNegative, group.weight_decay);
  take(fields, "learning_rate_scale", Range::kNotNegative, group.learning_rate_scale);
  fields.finish();
  return group;
}

// Throws for a parameter group that matches no parameter of the model, at its "match".
void refuse_unmatched_groups(const JsonCursor& optimizer, const OptimizerConfig& config,
                             const ModelSpec& model) {
  const std::optional<std::size_t> unmatched = find_unmatched(config.groups, model);
  if (!unmatched) return;
  const JsonItems groups = JsonFields(optimizer).required("groups").items();
  const JsonCursor match = JsonFields(groups[*unmatched]).required("match");
  match.fail(match.describe(), "a pattern that matches the name of a parameter of the model");
}

OptimizerConfig parse_optimizer(const JsonCursor& object) {
  OptimizerConfig optimizer;
  JsonFields fields(object);
  optimizer.kind = static_cast<OptimizerConfig::Kind>(take_name(fields, "kind", kOptimizerKinds));
  take(fields, "learning_rate", Range::kPositive, optimizer.learning_rate);
  take(fields, "weight_decay", Range::kNotNegative, optimizer.weight_decay);
  switch (optimizer.kind) {
    case OptimizerConfig::Kind::kAdamW:
      take(fields, "beta1", Range::kFraction, optimizer.beta1);
      take(fields, "beta2", Range::kFraction, optimizer.beta2);
      take(fields, "epsilon", Range::kPositive, optimizer.epsilon);
      break;
    case OptimizerConfig::Kind::kSgd:
      take(fields, "momentum", Range::kFraction, optimizer.momentum);
      break;
  }
  optimizer.schedule = take_schedule(fields);
  take(fields, "warm_up_steps", 0, kLargestSteps, optimizer.warm_up_steps);
  take(fields, "clip_norm", Range::kNotNegative, optimizer.clip_norm);
  if (const Given groups = fields.optional("groups")) {
    for (const JsonCursor& group : groups->items()) {
      optimizer.groups.push_back(parse_group(group, optimizer.weight_decay));
    }
  }
  fields.finish();
  return optimizer;
}

// Parses PipeTransformer's schedule from its three numbers alone, in epochs; alpha 0 is no
// freezing.
FreezeConfig parse_alpha(JsonFields& fields) {
  AlphaFreeze alpha{.alpha = 0, .start = 0, .interval = 1, .unit = PaceUnit::kEpochs};
  int start_epoch = 1;
  int interval_epochs = 1;
  take(fields, "alpha", Range::kFraction, alpha.alpha);
  take(fields, "start_epoch", 1, kLargestCount, start_epoch);
  take(fields, "interval_epochs", 1, kLargestCount, interval_epochs);
  FreezeConfig config;
  if (const Given freezes = fields.optional("freeze_untrainable")) {
    config.freeze_untrainable = freezes->boolean();
  }
  fields.finish();
  if (alpha.alpha == 0) return config;
  alpha.start = start_epoch - 1;
  alpha.interval = interval_epochs;
  config.policy = alpha;
  return config;
}

void take_bytes(JsonFields& fields, const std::string& key, Bytes& bytes) {
  if (const Given given = fields.optional(key)) bytes.count = given->integer(0, kLargestQuantity);
}

void take_link(JsonFields& fields, const std::string& tier, Link& link) {
  const std::string bandwidth = tier + "_bandwidth_bytes_per_second";
  if (const Given rate = fields.optional(bandwidth.c_str())) {
    link.bandwidth = BytesPerSecond{rate->integer(1, kLargestQuantity)};
  }
  const std::string latency = tier + "_latency_ns";
  if (const Given time = fields.optional(latency.c_str())) {
    link.latency = Duration{time->integer(0, kLargestQuantity)};
  }
}

CacheConfig parse_cache(const JsonCursor& object) {
  CacheConfig cache;
  JsonFields fields(object);
  cache.kind = static_cast<CacheConfig::Kind>(take_name(fields, "kind", kCacheKinds));
  if (cache.is_on()) {
    take_bytes(fields, "memory_bytes", cache.memory);
    take_bytes(fields, "disk_bytes", cache.disk);
    if (const Given folder = fields.optional("folder")) cache.folder = folder->text();
    cache.precision = static_cast<FeaturePrecision>(take_name(fields, "precision", kPrecisions));
    if (const Given check = fields.optional("check")) cache.check = check->boolean();
    cache.admission =
        static_cast<CacheConfig::Admission>(take_name(fields, "admission", kCacheAdmissions));
    cache.shared_by =
        static_cast<CacheConfig::SharedBy>(take_name(fields, "shared_by", kCacheSharing));
    take_link(fields, "memory", cache.memory_link);
    take_link(fields, "disk", cache.disk_link);
  }
  fields.finish();
  return cache;
}

DriftConfig parse_drift(const JsonCursor& object, const RunConfig& config) {
  constexpr int kLongestWindow = 1'000'000;
  DriftConfig drift;
  JsonFields fields(object);
  drift.kind = static_cast<DriftConfig::Kind>(take_name(fields, "kind", kDriftKinds));
  if (drift.is_on()) {
    take(fields, "window_steps", 1, kLongestWindow, drift.window_steps);
    if (const Given rate = fields.optional("false_alarms")) {
      drift.false_alarms = rate->real(0, 1);
      if (drift.false_alarms == 0) rate->fail(rate->describe(), "more than 0");
    }
    if (config.batch_growth != BatchGrowth::kNone) {
      object.fail("drift watched in a run whose batch grows with the pipelines",
                  "\"batch_growth\": \"none\", or no drift");
    }
    if (config.local_statistics) {
      object.fail("drift watched in a run whose slices normalise by statistics of their own",
                  "\"local_statistics\": false, or no drift");
    }
  }
  fields.finish();
  return drift;
}

AugmentationConfig parse_augmentation(const JsonCursor& object) {
  AugmentationConfig augmentation;
  JsonFields fields(object);
  augmentation.kind =
      static_cast<AugmentationConfig::Kind>(take_name(fields, "kind", kAugmentationKinds));
  if (augmentation.is_random()) {
    if (augmentation.crops()) {
      take(fields, "padding", 0, kLargestShift, augmentation.pixels);
      if (const Given flip = fields.optional("flip")) augmentation.flip = flip->boolean();
    } else {
      take(fields, "pixels", 1, kLargestShift, augmentation.pixels);
    }
    take(fields, "variants", 0, kMostVariants, augmentation.variants);
  }
  fields.finish();
  return augmentation;
}

constexpr int kLongestDeadline = 365 * 24 * 3600;  // seconds

std::optional<double> take_deadline(JsonFields& fields) {
  const Given given = fields.optional("deadline_seconds");
  if (!given) return std::nullopt;
  const double seconds = given->real(0, kLargestNumber);
  if (seconds == 0) given->fail(given->describe(), "more than 0");
  if (seconds > kLongestDeadline) {
    given->fail(given->describe(), "at most " + std::to_string(kLongestDeadline) + ", a year");
  }
  return seconds;
}

// Refuses a cache beside an augmentation that draws anew in every epoch: to read an old draw in
// place of a new one would freeze the augmentation silently.
void refuse_fresh_draws(const JsonCursor& cache, const RunConfig& config) {
  if (!config.cache.is_on() || !config.augmentation.is_random()) return;
  if (config.augmentation.variants > 0) return;
  cache.fail("a cache beside an augmentation that draws anew in every epoch",
             "\"variants\" in the augmentation, which names how many draws there are, or no cache");
}

// In mode exact no plan slices micro-batches, so that all plans learn the same.
void refuse_exact_slices(const JsonCursor& local, const RunConfig& config) {
  if (!config.local_statistics || config.reduction == ReductionMode::kFast) return;
  local.fail("\"local_statistics\": true beside \"reduction\": \"exact\"",
             "false, or \"reduction\": \"fast\"");
}

// Only images can be shifted.
void refuse_moved_tokens(const JsonCursor& augmentation, const RunConfig& config) {
  if (!config.augmentation.is_random() || sample_form(config.model).reads_images()) return;
  const JsonCursor kind = JsonFields(augmentation).required("kind");
  kind.fail(kind.describe(), "\"none\", or a model that reads images");
}

// Returns the object whose keys say what samples the model reads.
Given find_kept_network(const Given& model, const ModelChoice& choice) {
  if (!std::holds_alternative<DistillationChoice>(choice)) return model;
  return JsonFields(*model).required("student");
}

}  // namespace

RunConfig parse_run_config(std::string_view text, const std::string& file) {
  RunConfig config;
  JsonFields fields(parse_json(text, file));
  expect_format(fields, std::string(kRunFormat), kRunVersion);
  const Given model = fields.optional("model");
  const Given data = fields.optional("data");
  if (data) config.data = parse_data(*data);
  if (model) config.model = parse_model(*model, std::filesystem::path(file).parent_path());
  if (const Given weights = fields.optional("init_from")) config.init_from = weights->text();
  expect_fitting(config.data, sample_form(config.model),
                 {.model = find_kept_network(model, config.model), .data = data});
  if (const Given optimizer = fields.optional("optimizer")) {
    config.optimizer = parse_optimizer(*optimizer);
    if (!config.optimizer.groups.empty()) {
      refuse_unmatched_groups(*optimizer, config.optimizer, make_model(config.model));
    }
  }
  take(fields, "epochs", 1, kLargestCount, config.epochs);
  take(fields, "evaluation_epochs", 1, kLargestCount, config.evaluation_epochs);
  const Given batch = take(fields, "batch_size", 1, kLargestCount, config.batch_size);
  config.batch_growth = static_cast<BatchGrowth>(take_name(fields, "batch_growth", kBatchGrowths));
  const Given micro_batch =
      take(fields, "micro_batch_size", 1, kLargestCount, config.micro_batch_size);
  take_seed(fields, config.seed);
  config.replan = static_cast<Replanning>(take_name(fields, "replan", kReplannings));
  if (const Given freeze = fields.optional("freeze")) {
    config.freeze = parse_freeze(*freeze, config.model, std::filesystem::path(file).parent_path());
  }
  config.reduction = static_cast<ReductionMode>(take_name(fields, "reduction", kReductionModes));
  if (const Given local = fields.optional("local_statistics")) {
    config.local_statistics = local->boolean();
    refuse_exact_slices(*local, config);
  }
  const Given precision = fields.optional("precision");
  config.precision = static_cast<Precision>(read_name(precision, kPrecisionNames));
  if (config.precision == Precision::kBf16 && config.reduction == ReductionMode::kExact) {
    precision->fail("\"bf16\" beside \"reduction\": \"exact\"",
                    "\"fp32\", or \"reduction\": \"fast\"");
  }
  config.message_order =
      static_cast<MessageOrder>(take_name(fields, "message_order", kMessageOrders));
  config.deadline_seconds = take_deadline(fields);
  if (const Given augmentation = fields.optional("augmentation")) {
    config.augmentation = parse_augmentation(*augmentation);
    refuse_moved_tokens(*augmentation, config);
  }
  if (const Given cache = fields.optional("cache")) {
    config.cache = parse_cache(*cache);
    refuse_fresh_draws(*cache, config);
  }
  if (const Given drift = fields.optional("drift")) {
    config.drift = parse_drift(*drift, config);
  }
  fields.finish();
  if (config.micro_batch_size > config.batch_size) {
    blame({micro_batch, batch}, with_value("micro_batch_size", config.micro_batch_size) +
                                    " no larger than " +
                                    with_value("batch_size", config.batch_size));
  }
  return config;
}

RunConfig read_run_config(const std::filesystem::path& path) {
  RunConfig config = parse_run_config(read_text_file(path), path.string());
  const std::filesystem::path place = std::filesystem::absolute(path).parent_path();
  if (!config.cache.folder.empty()) {
    config.cache.folder = (place / config.cache.folder).lexically_normal().string();
  }
  if (!config.init_from.empty()) {
    config.init_from = (place / config.init_from).lexically_normal().string();
  }
  find_files(config.data, place);
  return config;
}

FreezeConfig parse_freeze(const JsonCursor& value, const ModelChoice& model,
                          const std::filesystem::path& folder) {
  JsonFields fields(value);
  const std::vector<std::string> keys = fields.keys();
  const bool is_short = std::none_of(keys.begin(), keys.end(), [](const std::string& key) {
    return key == "policy" || key == "decorators";
  });
  if (is_short) return parse_alpha(fields);
  FreezeConfig config = parse_freeze_config(value, count_blocks(model), folder);
  if (auto* trace = std::get_if<TraceFreeze>(&config.policy)) {
    trace->path = std::filesystem::absolute(folder / trace->path).lexically_normal().string();
  }
  return config;
}

}  // namespace frazil
