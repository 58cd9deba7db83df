#include "planner/reproduce/own_plans/own_training.h"

#include "planner/reproduce/elastic_run.h"
#include "planner/reproduce/rtx5000.h"
#include "planner/search/search.h"

namespace frazil {
namespace {

constexpr int kParkHosts = 2;
constexpr int kDevicesPerHost = 8;

// Returns the tier that the hosts make together: each moves its share of the samples.
CacheTier join_hosts(Bytes room, const Link& link) {
  return {room * kParkHosts,
          {link.latency / kParkHosts, BytesPerSecond{link.bandwidth.count * kParkHosts}}};
}

FreezeMask make_mask(const OwnTraining& training, int frozen) {
  const auto blocks = static_cast<int>(training.profile.blocks.size());
  if (frozen == 0) return FreezeMask::all_active(blocks);
  return FreezeMask::frozen_prefix(blocks, BlockId{frozen});
}

}  // namespace

Cluster make_own_cluster(const OwnTraining& training, int rings) {
  Cluster cluster = make_rtx5000_cluster(kDevicesPerHost, rings, kParkHosts);
  for (Device& device : cluster.devices) {
    device.memory_limit = training.device_memory - kRtx5000Context;
  }
  return cluster;
}

std::vector<ForecastSegment> list_segments(const OwnTraining& training) {
  const Step epoch = steps_per_epoch(make_own_store(training), training.batch_size);
  std::vector<ForecastSegment> segments;
  Step begin = 0;
  for (const int frozen : training.frozen) {
    const FreezeMask mask = make_mask(training, frozen);
    if (!segments.empty() && segments.back().mask == mask) {
      segments.back().steps += epoch;
    } else {
      segments.push_back({begin, epoch, mask});
    }
    begin += epoch;
  }
  return segments;
}

SearchOptions search_options(const OwnTraining& training) {
  SearchOptions options;
  options.batch_size = training.batch_size;
  options.micro_batch_sizes = training.micro_batch_sizes;
  options.schedules = synchronous_schedules();
  options.mask = make_mask(training, 0);
  options.reduction = ReductionMode::kFast;
  options.overlap.emplace();
  options.clip = true;
  options.recompute = true;
  return options;
}

FeatureStore make_own_store(const OwnTraining& training) {
  const HostRoom& room = training.room_of_host;
  return {.samples = training.samples,
          .memory = join_hosts(room.memory, {Duration{0}, training.cache_of_host}),
          .disk = join_hosts(room.disk, kDiskLink)};
}

TransitionOverhead own_overhead() { return {.start = halving_time(2)}; }

int count_fitting_samples(const OwnTraining& training) {
  const Bytes room = make_own_cluster(training, 1).devices.front().memory_limit;
  const auto needed = [&](int samples) {
    Bytes bytes;
    for (const Layer& layer : training.profile.layers) {
      bytes += layer.parameters * 2 + layer.optimizer_state + cost_at(layer, samples).cost.stash;
    }
    return bytes;
  };
  int samples = 0;
  while (samples < training.batch_size && needed(samples + 1) <= room) ++samples;
  return samples;
}

}  // namespace frazil
