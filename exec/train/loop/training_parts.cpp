#include "exec/train/loop/training_parts.h"

#include "exec/config/configured_run.h"

namespace frazil {
namespace {

RunWorld make_world(const TrainOptions& options, Silences& silences) {
  if (!options.world) return one_process(static_cast<int>(options.cluster.devices.size()));
  RunWorld world = options.world();
  world.warn = [&silences](const Silence& silence) { silences.note(silence); };
  return world;
}

}  // namespace

TrainingParts::TrainingParts(const TrainOptions& all_options, const Dataset& all_data,
                             Step all_steps, const RunTeller::Progress& progress)
    : options(all_options),
      config(options.config),
      data(all_data),
      places{data.train.count(), config.batch_size},
      steps_per_epoch(places.of_epoch()),
      steps(all_steps),
      shape(shape_run(options.profile, steps, steps_per_epoch, config.seed)),
      teller(progress, steps, scores, recorder),
      silences([this](const Silence& silence) { teller.tell_silence(silence); }),
      run(make_model(config), config.optimizer, config.seed, make_world(options, silences),
          run_options(config, options.processors)),
      cache(options, shape, run, data.train),
      replanner(options, shape, data.train.count()),
      plans(options, run, cache, replanner),
      freezing(config.freeze, shape, data.train, run, replanner),
      recorder(describe_run(options, steps, run.devices()), options.event_log) {}

void note_cache(TrainingParts& parts) {
  for (const FreezeEvent& event : parts.cache.take_events()) parts.recorder.note(event);
}

}  // namespace frazil
