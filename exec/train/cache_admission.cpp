#include "exec/train/cache_admission.h"

#include <algorithm>

#include "planner/plan/activity.h"
#include "planner/prediction/simulate_plan.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

Duration share_of(Duration duration, std::int64_t part, std::int64_t whole) {
  return Duration{static_cast<Duration::rep>(static_cast<Wide>(duration.count()) * part / whole)};
}

std::optional<std::vector<TracedMask>> foresee(const TrainOptions& options, const RunShape& run) {
  if (!options.config.cache.is_on()) return std::nullopt;
  return foresee_masks(options.config.freeze, run);
}

}  // namespace

CacheAdmission::CacheAdmission(const TrainOptions& options, const RunShape& run,
                               std::int64_t samples, int variants)
    : options_(options), run_(run), samples_(samples * variants), forecast_(foresee(options, run)) {
  run_.steps_per_epoch *= variants;  // steps of a round through all variants
}

// A plan that fills or reads a cache does so step by step, so its devices do not go ahead.
Duration CacheAdmission::step_time(const Plan& plan, int depth) const {
  Plan uncached = plan;
  uncached.cache_frozen_prefix = false;
  Activity activity = find_activity(options_.profile, uncached);
  activity.cached = depth;
  uncached.cache_frozen_prefix =
      depth > 0 && depth == count_frozen_prefix(options_.profile, activity);
  const Setting setting{options_.profile, options_.cluster};
  const StepOptions step{.clip = options_.config.optimizer.clip_norm > 0};
  const PlanSimulation simulated = simulate_window(
      simulate_step(uncached, activity, setting, step),
      plan.cache_frozen_prefix ? 1 : count_window(uncached, setting, step), setting);
  return simulated.step_time / batches_of(plan, options_.config);
}

// Returns the part of `prefix` that does not depend on the number of samples. A line through the
// forwards of one sample and of a whole micro-batch tells what is left at no sample.
Duration CacheAdmission::fixed_part(Duration prefix, const Activity& activity, int from,
                                    int depth) const {
  const int size = options_.config.micro_batch_size;
  if (size == 1) return Duration{0};
  Duration fixed{0};
  Duration whole{0};
  for (int l = from; l < depth; ++l) {
    if (activity.is_idle(LayerId{l})) continue;
    const Layer& layer = options_.profile.layers[static_cast<std::size_t>(l)];
    const Duration one = cost_at(layer, 1).cost.forward_frozen;
    const Duration all = cost_at(layer, size).cost.forward_frozen;
    fixed += std::clamp((one * size - all) / (size - 1), Duration{0}, all);
    whole += all;
  }
  return whole.count() == 0 ? Duration{0} : share_of(prefix, fixed.count(), whole.count());
}

FeatureStore CacheAdmission::find_store(Bytes of_sample, const FeatureRoom& room) const {
  const CacheConfig& config = options_.config.cache;
  return {samples_,
          {of_sample * std::min(samples_, room.in_memory), config.memory_link},
          {of_sample * std::min(samples_, room.on_disk), config.disk_link}};
}

CacheAdmission::Answer CacheAdmission::ask(const Plan& cached, const std::optional<Plan>& without,
                                           Step step, const FeatureCache::Source& source,
                                           Bytes of_sample, const FeatureRoom& room,
                                           int caches) const {
  Answer answer;
  const Activity activity = find_activity(options_.profile, cached);
  answer.depth = activity.cached;
  FillQuestion& question = answer.question;
  question.store = find_store(of_sample, room);
  question.of_sample = of_sample;
  question.caches = caches;
  question.epoch = run_.steps_per_epoch;
  question.micro_batches =
      run_.steps_per_epoch * cached.micro_batches() / batches_of(cached, options_.config);
  question.steps = count_resident_steps(forecast_, run_, options_.profile, step, answer.depth);
  question.reads = step_time(cached, answer.depth);
  question.fills = step_time(cached, 0);
  const std::int64_t held = source.in_memory + source.on_disk;
  if (source.depth > 0 && held > 0) {
    const Duration saved = question.fills - step_time(cached, source.depth);
    const FeatureStore store = find_store(source.feature, {});
    Duration reading{0};
    for (const FeatureTier tier : {FeatureTier::kMemory, FeatureTier::kDisk}) {
      const std::int64_t there = tier == FeatureTier::kMemory ? source.in_memory : source.on_disk;
      if (there == 0) continue;
      reading += transfer_time(store.tier(tier), source.feature, there, question.micro_batches);
    }
    question.fills =
        std::max(question.fills - share_of(saved, held, samples_), reading / question.epoch);
    answer.going_on = question.fills;
  }
  if (without) answer.uncached = step_time(*without, 0);
  const Duration uncached = answer.uncached.value_or(question.fills);
  question.without = answer.going_on ? std::min(uncached, *answer.going_on) : uncached;
  question.fixed = fixed_part(std::max(Duration{0}, question.fills - question.reads), activity,
                              source.depth, answer.depth);
  answer.choice = choose_fill(question);
  answer.fills = answer.choice.pays();
  answer.keeps_source = !answer.fills && answer.going_on && *answer.going_on <= uncached;
  return answer;
}

}  // namespace frazil
