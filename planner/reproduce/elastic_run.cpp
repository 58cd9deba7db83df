#include "planner/reproduce/elastic_run.h"

#include "planner/lowering/lower.h"
#include "planner/named/pipe_transformer.h"
#include "planner/plan/activity.h"
#include "planner/prediction/ranking.h"
#include "planner/reproduce/launches.h"
#include "planner/reproduce/rtx5000.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "sim/simulate.h"

namespace frazil {
namespace {

constexpr int kHosts = 2;

FreezeMask mask_of(int blocks, int frozen) {
  if (frozen == 0) return FreezeMask::all_active(blocks);
  return FreezeMask::frozen_prefix(blocks, BlockId{frozen});
}

// Returns the pipeline length under AutoPipe. The largest stage of the unfrozen model at the
// initial length limits the stages of shorter pipelines.
int find_length(const Training& training, int length, int frozen) {
  const auto blocks = static_cast<int>(training.profile.blocks.size());
  const auto all = find_active_parameters(training.profile, mask_of(blocks, 0));
  return compress_length(find_active_parameters(training.profile, mask_of(blocks, frozen)), length,
                         largest_stage(all, training.devices_per_host));
}

// Simulates an epoch that keeps the first cut: frozen layers stay in their stages and only run
// forward there.
ParkStep simulate_first_cut(const EpochModel& model, const PipeTransformerShape& shape,
                            int devices_per_host) {
  PipeTransformerShape whole = shape;
  whole.mask = FreezeMask::all_active(shape.mask.blocks());
  const Cluster cluster = make_rtx5000_cluster(devices_per_host, shape.length);
  Plan plan = make_pipe_transformer_plan({model.profile, cluster}, whole);
  plan.mask = shape.mask;
  return simulate_on_park(plan, model.profile, devices_per_host, shape.length);
}

// What of the frozen layers an epoch reads and writes.
struct CacheUse {
  std::optional<int> cached = std::nullopt;
  bool fills = false;
};

Epoch simulate_epoch(const Training& training, int length, int frozen, const CacheUse& cache,
                     const ElasticParts& parts) {
  const EpochModel model = cache.fills ? make_filling_model(training.profile, frozen, cache.cached)
                                       : make_epoch_model(training.profile, frozen, cache.cached);
  const int per_host = parts.auto_dp ? training.devices_per_host / length : 1;
  const int growth = training.batch_grows ? per_host : 1;
  Epoch epoch{.frozen = frozen,
              .cached = cache.cached,
              .fills = cache.fills,
              .length = length,
              .pipelines = kHosts * per_host};
  epoch.batch_size = kHosts * training.pipeline_batch * growth;
  const PipeTransformerShape shape{.length = length,
                                   .pipelines_per_host = per_host,
                                   .batch_size = epoch.batch_size,
                                   .micro_batches = count_micro_batches(length),
                                   .mask = model.mask};
  const ParkStep step = parts.auto_pipe
                            ? simulate_shape(model, shape, training.devices_per_host)
                            : simulate_first_cut(model, shape, training.devices_per_host);
  epoch.step = step.time;
  epoch.fits = step.fits;
  return epoch;
}

}  // namespace

double Epoch::rate() const { return batch_size * 1e9 / static_cast<double>(step.count()); }

EpochModel make_epoch_model(const ModelProfile& profile, int frozen, std::optional<int> cached) {
  const auto blocks = static_cast<int>(profile.blocks.size());
  if (!cached) return {profile, mask_of(blocks, frozen)};
  ENSURE(*cached <= frozen, "the cache holds what frozen layers make");
  EpochModel model{read_from_cache(profile, *cached), {}};
  model.mask = FreezeMask::frozen_prefix(blocks - *cached, BlockId{frozen - *cached});
  return model;
}

EpochModel make_filling_model(const ModelProfile& profile, int frozen, std::optional<int> cached) {
  ENSURE(cached.value_or(0) < frozen, "some features that the cache lacks");
  EpochModel model = make_epoch_model(profile, frozen, cached);
  model.profile = write_to_cache(model.profile, BlockId{frozen - cached.value_or(0)});
  return model;
}

ParkStep simulate_on_park(const Plan& plan, const ModelProfile& profile, int devices_per_host,
                          int rings) {
  const Cluster cluster = make_rtx5000_cluster(devices_per_host, rings);
  const Activity activity = find_activity(profile, plan.mask);
  const auto devices = static_cast<int>(cluster.devices.size());
  const Schedule schedule = complete_schedule(make_schedule(plan, devices), plan, profile, activity,
                                              /*clip=*/true);
  LoweredStep step =
      lower(plan, schedule, {profile, cluster}, activity, {.overlap = ReductionOverlap{}});
  add_launches(step, plan, kLaunchOfALayer);
  const Simulation simulation = simulate(step.graph, {profile, cluster}, step.actions);
  return {simulation.makespan, !find_overflow(simulation.memory, cluster)};
}

ParkStep simulate_shape(const EpochModel& model, const PipeTransformerShape& shape,
                        int devices_per_host) {
  const Cluster cluster = make_rtx5000_cluster(devices_per_host, shape.length);
  const int pipelines = kHosts * shape.pipelines_per_host;
  const int pipeline_batch = divide_up(shape.batch_size, pipelines);
  const Plan plan = make_pipe_transformer_plan({model.profile, cluster}, shape);
  return simulate_on_park(plan, run_frozen_at_once(model.profile, pipeline_batch), devices_per_host,
                          shape.length);
}

std::vector<Epoch> simulate_run(const Training& training, const std::vector<int>& frozen,
                                const ElasticParts& parts) {
  std::vector<Epoch> epochs;
  int length = training.devices_per_host;
  int before = 0;
  for (const int now : frozen) {
    if (parts.auto_pipe) length = find_length(training, length, now);
    CacheUse cache;
    if (parts.auto_cache && before >= training.cache_from) cache.cached = before;
    cache.fills = parts.auto_cache && now >= training.cache_from && now > before;
    epochs.push_back(simulate_epoch(training, length, now, cache, parts));
    before = now;
  }
  return epochs;
}

Duration training_time(const std::vector<Epoch>& epochs, std::int64_t samples) {
  Duration time{0};
  for (const Epoch& epoch : epochs) time += epoch.step * samples / epoch.batch_size;
  return time;
}

Duration start_time() { return std::chrono::milliseconds(18'800 + 5'000 + 5'100); }

Duration halving_time(int before) {
  using std::chrono::milliseconds;
  if (before == 8) return milliseconds(13'000 + 4'100);
  if (before == 4) return milliseconds(15'000 + 4'300);
  if (before == 2) return milliseconds(11'000 + 3'800);
  return Duration{0};
}

Duration transition_time(const std::vector<Epoch>& epochs) {
  Duration time = start_time();
  int before = epochs.front().length;
  for (const Epoch& epoch : epochs) {
    for (; before > epoch.length; before /= 2) time += halving_time(before);
  }
  return time;
}

}  // namespace frazil
