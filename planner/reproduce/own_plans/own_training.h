#pragma once
// A training of which this project makes its own plans, on the devices and under the freeze trace
// of PipeTransformer (He et al. 2021). Unlike there, the global batch stays as it is, any schedule
// of the menu may be held, and the features of the frozen prefix come from this project's own cache
// (planner/trajectory/plan_caches.h): each of the two hosts caches its half of the samples, and
// copies features out of its memory and into it at kMemoryLink.
// What is charged beside steps is PipeTransformer's own, as its logs have it: the start of
// transition_time() (planner/reproduce/elastic_run.h), and for each transition the shortest that is
// published (K = 2 -> 1: 11 + 3.8 s), besides the time to move state over the links.

#include <cstdint>
#include <string>
#include <vector>

#include "planner/trajectory/plan_trajectory.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// What a host has for features. As everywhere in the planner (find_room of
// planner/transitions/feature_store.h), memory or disk caches all samples of the host or none.
struct HostRoom {
  // Room for the features of every sample, as PipeTransformer's cache is taken to have.
  Bytes memory{std::int64_t{1} << 50};
  Bytes disk;  // read and written at kDiskLink
};

struct OwnTraining {
  std::string name;
  ModelProfile profile;  // made by planner/reproduce/rtx5000.h
  int batch_size = 1;    // of all pipelines, in every step
  std::vector<int> micro_batch_sizes;
  std::int64_t samples = 1;  // in an epoch
  std::vector<int> frozen;   // L_f by epoch
  Bytes device_memory;       // what a device has, the context included
  // Each host's cache; that of PipeTransformer has 2.2 GB/s.
  BytesPerSecond cache_of_host = kMemoryLink.bandwidth;
  HostRoom room_of_host = {};
};

// Returns the park with the training's devices. `rings` is that of make_rtx5000_cluster().
Cluster make_own_cluster(const OwnTraining& training, int rings);
// Returns the masks of the epochs, equal neighbours joined.
std::vector<ForecastSegment> list_segments(const OwnTraining& training);
// Returns what every search of the training chooses from.
SearchOptions search_options(const OwnTraining& training);
FeatureStore make_own_store(const OwnTraining& training);
TransitionOverhead own_overhead();

// Returns how many samples at a time one device can train of the unfrozen model, beside parameters,
// gradients and optimizer state; 0 if it has no room for one.
int count_fitting_samples(const OwnTraining& training);

}  // namespace frazil
