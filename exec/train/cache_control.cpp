#include "exec/train/cache_control.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "exec/data/augmentation.h"
#include "planner/plan/activity.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Makes the answer fill as much as has room, whatever that brings.
void fill_all(CacheAdmission::Answer& answer, const FeatureRoom& room) {
  answer.fills = true;
  answer.keeps_source = false;
  const FillQuestion& question = answer.question;
  const std::int64_t in_memory = std::min(question.store.samples, room.in_memory);
  const std::int64_t on_disk = std::min(question.store.samples - in_memory, room.on_disk);
  if (question.steps > question.epoch && in_memory + on_disk > 0) {
    answer.choice = price_fill(question, in_memory, on_disk);
  }
}

// Returns the number of layers that can be cached; throws InfeasibleError as find_activity does.
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

CacheControl::CacheControl(const TrainOptions& options, const RunShape& shape, Run& run,
                           const Samples& samples)
    : config_(options.config.cache),
      profile_(options.profile),
      variants_(count_variants(options.config.augmentation).value_or(1)),
      samples_(samples.count()),
      admission_(options, shape, samples_, variants_),
      round_(shape.steps_per_epoch * variants_) {
  const CacheConfig& config = config_;
  const bool is_durable = options.durable.has_value();
  if (!config.is_on()) return;
  ENSURE(count_variants(options.config.augmentation).has_value(),
         "as many draws of each sample as the configuration names");
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
  const PrefixCacheOptions made{.limits = {config.memory, config.disk, folder},
                                .precision = config.precision,
                                .checks = config.check,
                                .variants = variants_};
  cache_.emplace(run.model(), example_outputs(run.model(), narrow(samples, 0, 1)), samples.count(),
                 options.cache_files, made);
  run.attach(*cache_);
  room_warning_ = warn_of_room(cache_->room(), samples_ * variants_);
}

bool CacheControl::admit(const Plan& cached, const std::optional<Plan>& without, Step step) {
  answer_.reset();
  const FeatureCache::Source source = cache_->find_source();
  const FeatureRoom room{cache_->room(FeatureTier::kMemory), cache_->room(FeatureTier::kDisk)};
  const int depth = count_cached(cached, profile_);
  const Bytes of_sample = cache_->bytes_per_sample(depth);
  // Either nothing crosses the boundary, or this depth is cached already.
  if (of_sample.count == 0 || depth == cache_->depth()) return true;
  answer_ = admission_.ask(cached, without, step,
                           depth > source.depth ? source : FeatureCache::Source{}, of_sample, room);
  if (config_.admission == CacheConfig::Admission::kAlways) {
    fill_all(*answer_, room);
  } else if (answer_->fills) {
    cache_->admit({answer_->choice.in_memory, answer_->choice.on_disk});
  } else {
    cache_->admit({0, 0});
  }
  return answer_->fills || answer_->keeps_source || !without;
}

CacheEvent CacheControl::describe_held(CacheChange change) const {
  const Bytes of_sample = cache_->bytes_per_sample();
  const std::int64_t in_memory = cache_->count(FeatureTier::kMemory);
  const std::int64_t on_disk = cache_->count(FeatureTier::kDisk);
  return {.change = change,
          .layers = cache_->depth(),
          .samples = in_memory + on_disk,
          .memory = of_sample * in_memory,
          .disk = of_sample * on_disk};
}

void CacheControl::begin(const Plan& plan, Step step) {
  if (!cache_) return;
  const int depth = plan.cache_frozen_prefix ? cache_->depth() : 0;
  if (depth == course_.depth && !answer_) return;
  const std::optional<CacheAdmission::Answer> answer = std::exchange(answer_, std::nullopt);
  end_course(step);
  note_left(step);
  if (held_.depth > 0 && held_.depth != cache_->depth()) {
    before_ = held_;
    note_left(step);
  }
  course_ = {.depth = depth, .answer = answer, .first = step};
  course_.counts = cache_->counts();
  course_.checked = cache_->checked();
  declined_.clear();
  if (!answer) return;
  const FillChoice& choice = answer->choice;
  CacheEvent event{.change = answer->fills ? CacheChange::kBegun : CacheChange::kDeclined,
                   .layers = answer->depth,
                   .samples = 0,
                   .memory = {},
                   .disk = {},
                   .note = explain(answer->question, choice)};
  if (answer->fills) {
    event.samples = choice.samples();
    event.memory = answer->question.of_sample * choice.in_memory;
    event.disk = answer->question.of_sample * choice.on_disk;
    event.predicted = choice.fill;
  } else if (answer->keeps_source) {
    event.note += "; what is held serves on";
  }
  if (!answer->fills) declined_ = event.note;
  note(step, event);
}

Duration CacheControl::reading() const {
  return cache_->traffic(FeatureTier::kMemory).reading +
         cache_->traffic(FeatureTier::kDisk).reading;
}

void CacheControl::add_step(Step step, Step places, Duration time) {
  if (!cache_ || course_.depth == 0) return;
  held_ = cache_->find_source();
  const Step before = course_.steps;
  course_.steps += places;
  course_.time += time;
  const FeatureCounts counts = cache_->counts();
  if (counts.turned_away > course_.counts.turned_away && !course_.is_full) {
    course_.is_full = true;
    note(step + places, describe_held(CacheChange::kFull));
  }
  note_left(step + places);
  if (before >= round_ || course_.steps < round_) return;
  course_.reading = reading();
  course_.filled = counts;
  if (!course_.answer || !course_.answer->fills) return;
  CacheEvent event = describe_held(CacheChange::kFilled);
  event.predicted = course_.answer->choice.fill;
  event.measured = course_.time;
  note(step + places, event);
}

// Notes that features of the depth before have left, once none is there.
void CacheControl::note_left(Step step) {
  if (before_.depth == 0 || cache_->depth_before() == before_.depth) return;
  note(step, {.change = CacheChange::kLeft,
              .layers = before_.depth,
              .samples = before_.in_memory + before_.on_disk,
              .memory = before_.feature * before_.in_memory,
              .disk = before_.feature * before_.on_disk});
  before_ = {};
}

void CacheControl::end_course(Step step) {
  if (course_.depth == 0) return;
  note_read(step);
  const std::int64_t checked = cache_->checked() - course_.checked;
  if (checked > 0) {
    note(step, {.change = CacheChange::kChecked,
                .layers = course_.depth,
                .samples = checked,
                .memory = {},
                .disk = {}});
  }
  course_ = {};
}

// Notes what steps have read after the epochs that fill.
void CacheControl::note_read(Step step) {
  const Step steps = course_.steps - round_;
  if (steps <= 0) return;
  const FeatureCounts now = cache_->counts();
  const std::int64_t found = now.found - course_.filled.found;
  const std::int64_t before = now.found_before - course_.filled.found_before;
  const std::int64_t asked = found + before + now.missed - course_.filled.missed;
  if (asked == 0) return;
  const bool is_held = held_.depth == course_.depth;
  CacheEvent event{.change = CacheChange::kRead,
                   .layers = course_.depth,
                   .samples = found,
                   .memory = held_.feature * (is_held ? held_.in_memory : 0),
                   .disk = held_.feature * (is_held ? held_.on_disk : 0)};
  if (course_.answer && course_.answer->fills) {
    event.predicted = course_.answer->choice.reading * steps / round_;
  }
  event.measured = reading() - course_.reading;
  event.note = std::to_string(found) + " of " + std::to_string(asked) + " samples found";
  if (before > 0) event.note += ", " + std::to_string(before) + " at the depth before";
  note(step, event);
}

void CacheControl::end(Step steps) {
  if (cache_) end_course(steps);
}

void CacheControl::expect(const std::vector<std::int64_t>& samples, int size) {
  std::vector<ReadAhead::SampleIds> micro_batches;
  const auto count = static_cast<std::ptrdiff_t>(samples.size());
  for (std::ptrdiff_t begin = 0; begin < count; begin += size) {
    const std::ptrdiff_t end = std::min<std::ptrdiff_t>(begin + size, count);
    micro_batches.emplace_back(samples.begin() + begin, samples.begin() + end);
  }
  cache_->expect(std::move(micro_batches));
}

std::string CacheControl::describe(const Plan& plan, const ModelProfile& profile) const {
  if (!cache_) return "";
  if (!declined_.empty()) return "; filling the cache is declined: " + declined_;
  if (plan.cache_frozen_prefix && cache_->depth() > 0) {
    const bool rounds = config_.precision == FeaturePrecision::kBfloat16;
    return "; what " + name_layers(cache_->depth()) + " put out is cached, " +
           std::to_string(cache_->bytes_per_sample().count) + " bytes a sample in " +
           std::string(name_of(config_.precision)) +
           (variants_ > 1 ? ", in " + std::to_string(variants_) + " variants" : "") +
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
                     .in_memory = cache_->used(FeatureTier::kMemory),
                     .on_disk = cache_->used(FeatureTier::kDisk)};
}

}  // namespace frazil
