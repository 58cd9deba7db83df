#pragma once
// A PipeTransformer run, epoch by epoch: as layers freeze the pipeline is cut anew (AutoPipe), more
// pipelines take what becomes free (AutoDP), and features of the frozen prefix come from a cache
// (AutoCache). Each part can be off, as in Fig. 9 of He et al. 2021. Each epoch is one simulated
// step, reductions overlapping the last backward as DistributedDataParallel does, with a global
// norm.
// The cache holds every sample, as the published plateau implies; of ImageNet that is 388 GB a
// host.

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/named/pipe_transformer.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "profiles/units.h"
#include "traces/freeze_mask.h"

namespace frazil {

struct Training {
  ModelProfile profile;      // planner/reproduce/rtx5000.h
  int pipeline_batch = 1;    // samples of one pipeline at the start, K = 8, R = 2
  std::int64_t samples = 1;  // of an epoch
  int cache_from = 3;        // frozen layers from which the cache is used; BERT: 5
  bool batch_grows = true;   // with the pipelines, as published
  int devices_per_host = 8;
};

struct ElasticParts {
  bool auto_pipe = true;
  bool auto_dp = true;
  bool auto_cache = true;
};

struct Epoch {
  int frozen = 0;                            // L_f
  std::optional<int> cached = std::nullopt;  // layers whose features are read
  int length = 8;                            // K
  int pipelines = 2;                         // R
  int batch_size = 1;                        // of all pipelines
  Duration step{0};
  bool fits = true;  // into the devices' memory

  double rate() const;  // samples per second
  friend bool operator==(const Epoch&, const Epoch&) = default;
};

// The model as an epoch trains it, and its mask.
struct EpochModel {
  ModelProfile profile;
  FreezeMask mask;
};
EpochModel make_epoch_model(const ModelProfile& profile, int frozen, std::optional<int> cached);

// `frozen`: L_f of each epoch. An epoch reads the features that the one before it had frozen, and
// fills the cache with those of its own.
std::vector<Epoch> simulate_run(const Training& training, const std::vector<int>& frozen,
                                const ElasticParts& parts);

// A plan's step on two hosts of the machine park, `rings` all-reduces at a time.
struct ParkStep {
  Duration time{0};
  bool fits = true;  // into the devices' memory
};
ParkStep simulate_on_park(const Plan& plan, const ModelProfile& profile, int devices_per_host,
                          int rings);
// PipeTransformer's plan of a shape, frozen layers ahead of their pipelines.
ParkStep simulate_shape(const EpochModel& model, const PipeTransformerShape& shape,
                        int devices_per_host);

// Time to train through the epochs.
Duration training_time(const std::vector<Epoch>& epochs, std::int64_t samples);
// What the published logs show beside it: loading and building at the start 18.8 + 5 s and 5.1 s in
// the first batch; at K = 8 -> 4, 4 -> 2, 2 -> 1 a gap of 13, 15, 11 s and 4.1, 4.3, 3.8 s in the
// first batch.
Duration transition_time(const std::vector<Epoch>& epochs);

}  // namespace frazil
