#pragma once
// Simulates a PipeTransformer run epoch by epoch. As layers freeze, the pipeline is cut anew
// (AutoPipe), more pipelines take the devices that become free (AutoDP), and the features of the
// frozen prefix come from a cache (AutoCache). Each part can be off, as in Fig. 9 of He et al.
// 2021. Each epoch is represented by one simulated step, with reductions that overlap the last
// backward as in DistributedDataParallel, and with clipping by the global gradient norm.
// The cache holds every sample, as the published plateau implies; for ImageNet that is 388 GB per
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
  ModelProfile profile;      // made by planner/reproduce/rtx5000.h
  int pipeline_batch = 1;    // samples of one pipeline at the start, where K = 8 and R = 2
  std::int64_t samples = 1;  // in an epoch
  int cache_from = 3;        // number of frozen layers from which the cache is used; BERT: 5
  bool batch_grows = true;   // with the number of pipelines, as published
  int devices_per_host = 8;
};

struct ElasticParts {
  bool auto_pipe = true;
  bool auto_dp = true;
  bool auto_cache = true;
};

struct Epoch {
  int frozen = 0;                            // L_f
  std::optional<int> cached = std::nullopt;  // frozen layers whose features come from the cache
  bool fills = false;                        // writes the features of all frozen layers to it
  int length = 8;                            // K
  int pipelines = 2;                         // R
  int batch_size = 1;                        // of all pipelines
  Duration step{0};
  bool fits = true;  // within the devices' memory

  double rate() const;  // samples per second
  friend bool operator==(const Epoch&, const Epoch&) = default;
};

// The model as an epoch trains it, and its mask.
struct EpochModel {
  ModelProfile profile;
  FreezeMask mask;
};
// Freezes `frozen` layers, and replaces the first `cached` layers by a read from the cache.
// Requires: cached <= frozen.
EpochModel make_epoch_model(const ModelProfile& profile, int frozen, std::optional<int> cached);
// The same where the features behind the frozen layers are also written to the cache. Requires:
// cached < frozen.
EpochModel make_filling_model(const ModelProfile& profile, int frozen, std::optional<int> cached);

// Simulates every epoch; `frozen` holds L_f by epoch. An epoch reads the cached features of the
// layers that were frozen in the epoch before. If more are frozen by now, it fills the cache with
// the features of all of them, which the training process copies out of the device.
std::vector<Epoch> simulate_run(const Training& training, const std::vector<int>& frozen,
                                const ElasticParts& parts);

struct ParkStep {
  Duration time{0};
  bool fits = true;  // within the devices' memory
};
// Simulates one step of a plan on two hosts of the machine park, with `rings` all-reduces at a
// time.
ParkStep simulate_on_park(const Plan& plan, const ModelProfile& profile, int devices_per_host,
                          int rings);
// Simulates one step of PipeTransformer's plan of a shape, with the frozen layers running ahead of
// their pipelines.
ParkStep simulate_shape(const EpochModel& model, const PipeTransformerShape& shape,
                        int devices_per_host);

// Returns the time of all steps of the epochs, with `samples` samples per epoch.
Duration training_time(const std::vector<Epoch>& epochs, std::int64_t samples);
// These are the times beside training that the published logs show. At the start: 18.8 + 5 s to
// load and build, and 5.1 s in the first batch.
Duration start_time();
// At the transitions K = 8 -> 4, 4 -> 2 and 2 -> 1: a gap of 13, 15 and 11 s, and 4.1, 4.3 and
// 3.8 s in the first batch. Other lengths were not published and take no time here.
Duration halving_time(int before);
// Returns the start and all transitions of a run.
Duration transition_time(const std::vector<Epoch>& epochs);

}  // namespace frazil
