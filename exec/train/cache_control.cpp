#include "exec/train/cache_control.h"

#include <algorithm>
#include <set>
#include <utility>

#include "exec/config/configured_run.h"
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

// The prediction of a step is that of one that finds all its samples.
std::string describe_caches(int caches) {
  if (caches == 1) return "";
  return ", in " + std::to_string(caches) +
         " caches that share nothing, so that steps take longer than predicted until each has seen "
         "every sample";
}

// Returns the number of layers that can be cached; throws InfeasibleError as find_activity does.
int count_cached(Plan plan, const ModelProfile& profile) {
  plan.cache_frozen_prefix = true;
  return find_activity(profile, plan).cached;
}

}  // namespace

CacheControl::CacheControl(const TrainOptions& options, const RunShape& shape, Run& run,
                           const SampleSource& samples)
    : run_(run),
      config_(options.config.cache),
      profile_(options.profile),
      variants_(count_variants(options.config.augmentation).value_or(1)),
      samples_(samples.count()),
      admission_(options, shape, samples_, variants_),
      round_(shape.steps_per_epoch * variants_) {
  if (!config_.is_on()) return;
  if (options.durable && config_.precision == FeaturePrecision::kBfloat16) {
    throw InputError("run configuration", 0, "a cache in bfloat16, which rounds",
                     "one in float32 where the run keeps checkpoints");
  }
  cache_.emplace(run.model(), example_outputs(run.model(), samples.narrow(0, 1)), samples.count(),
                 options.cache_files,
                 cache_options(options.config, /*over_processes=*/options.world != nullptr));
  run.attach(*cache_);
  room_warning_ = warn_of_room(cache_->room(), samples_ * variants_);
}

// Returns none, and asks nothing, if either nothing crosses the end of the prefix or this depth is
// cached already.
std::optional<CacheControl::Asked> CacheControl::ask(const Plan& cached,
                                                     const std::optional<Plan>& without,
                                                     Step step) {
  answer_.reset();
  const int caches = count_caches(cached);
  FeatureCache::Source source = tally().source;
  // A sample is looked for in one of the caches.
  source.in_memory /= caches;
  source.on_disk /= caches;
  const FeatureRoom room{cache_->room(FeatureTier::kMemory), cache_->room(FeatureTier::kDisk)};
  const int depth = count_cached(cached, profile_);
  const Bytes of_sample = cache_->bytes_per_sample(depth);
  if (of_sample.count == 0 || depth == cache_->depth()) return std::nullopt;
  answer_ =
      admission_.ask(cached, without, step, depth > source.depth ? source : FeatureCache::Source{},
                     of_sample, room, caches);
  return Asked{depth, of_sample, room};
}

// The planner has looked at all that is to come, so its answer stands in place of admission's.
void CacheControl::follow(const Plan& cached, const HeldCache& planned, Step step) {
  const std::optional<Asked> asked = ask(cached, std::nullopt, step);
  if (!asked) return;
  answer_->fills = planned.features.depth == asked->depth;
  answer_->keeps_source = !answer_->fills;
  if (!answer_->fills) {
    cache_->admit({0, 0});
    return;
  }
  const FillQuestion& question = answer_->question;
  const bool on_disk = planned.features.tier == FeatureTier::kDisk;
  const std::int64_t samples =
      std::min(question.store.samples, on_disk ? asked->room.on_disk : asked->room.in_memory);
  if (question.steps > question.epoch && samples > 0) {
    answer_->choice = price_fill(question, on_disk ? 0 : samples, on_disk ? samples : 0);
  }
  cache_->admit({on_disk ? 0 : samples, on_disk ? samples : 0});
}

bool CacheControl::admit(const Plan& cached, const std::optional<Plan>& without, Step step) {
  const std::optional<Asked> asked = ask(cached, without, step);
  if (!asked) return true;
  if (config_.admission == CacheConfig::Admission::kAlways) {
    fill_all(*answer_, asked->room);
  } else if (answer_->fills) {
    cache_->admit({answer_->choice.in_memory, answer_->choice.on_disk});
  } else {
    cache_->admit({0, 0});
  }
  return answer_->fills || answer_->keeps_source || !without;
}

// Returns how many caches that share nothing serve the first stages of a plan. Before processes
// have told where their features lie, those of a run are taken to be on one host.
int CacheControl::count_caches(const Plan& plan) const {
  const PoolPlace& place = run_.pool().place();
  if (place.process_of.empty()) return 1;
  std::set<int> begin;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const DeviceId device : pipeline.stages.front().devices) {
      begin.insert(place.process_of.at(device.index()));
    }
  }
  if (!run_.cache_tallies().empty()) return count_stores(run_.cache_tallies(), begin);
  return config_.shared_by == CacheConfig::SharedBy::kHost ? 1 : static_cast<int>(begin.size());
}

CacheEvent CacheControl::describe_held(CacheChange change) const {
  const CacheTally held = tally();
  const Bytes of_sample = cache_->bytes_per_sample();
  const std::int64_t in_memory = held.in_memory;
  const std::int64_t on_disk = held.on_disk;
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
  const CacheTally now = tally();
  course_.counts = now.counts;
  course_.checked = now.checked;
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

void CacheControl::add_step(Step step, Step places, Duration time) {
  if (!cache_ || course_.depth == 0) return;
  const CacheTally now = tally();
  held_ = now.source;
  const Step before = course_.steps;
  course_.steps += places;
  course_.time += time;
  const FeatureCounts& counts = now.counts;
  if (counts.turned_away > course_.counts.turned_away && !course_.is_full) {
    course_.is_full = true;
    note(step + places, describe_held(CacheChange::kFull));
  }
  note_left(step + places);
  if (before >= round_ || course_.steps < round_) return;
  course_.reading = now.reading();
  course_.filled = counts;
  if (!course_.answer || !course_.answer->fills) return;
  CacheEvent event = describe_held(CacheChange::kFilled);
  event.predicted = course_.answer->choice.fill;
  event.measured = course_.time;
  note(step + places, event);
}

// Notes that features of the depth before have left, once none is there.
void CacheControl::note_left(Step step) {
  if (before_.depth == 0 || tally().depth_before == before_.depth) return;
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
  const std::int64_t checked = tally().checked - course_.checked;
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
  const CacheTally told = tally();
  const FeatureCounts& now = told.counts;
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
  event.measured = told.reading() - course_.reading;
  event.note = std::to_string(found) + " of " + std::to_string(asked) + " samples found";
  if (before > 0) event.note += ", " + std::to_string(before) + " at the depth before";
  note(step, event);
}

void CacheControl::end(Step steps) {
  if (cache_) end_course(steps);
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
           describe_caches(count_caches(plan)) +
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
  for (std::string& told : run_.take_cache_warnings()) warnings.push_back(std::move(told));
  if (!room_warning_.empty()) warnings.push_back(std::exchange(room_warning_, {}));
  return warnings;
}

std::optional<CacheReport> CacheControl::report() const {
  if (!cache_) return std::nullopt;
  const CacheTally all = tally();
  CacheReport report{.depth = cache_->depth(),
                     .bytes_per_sample = cache_->bytes_per_sample(),
                     .precision = config_.precision,
                     .counts = all.counts,
                     .micro_batches = all.micro_batches,
                     .in_memory = all.used_in_memory,
                     .on_disk = all.used_on_disk,
                     .caches = count_stores(run_.cache_tallies(), run_.processes())};
  if (run_.cache_tallies().size() < 2) return report;
  for (const auto& [process, told] : run_.cache_tallies()) {
    report.processes[process] = told.counts;
  }
  return report;
}

}  // namespace frazil
