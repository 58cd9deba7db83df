// The jobs of a DevicePool (exec/run/device_pool.h) that measure what connects devices.
#include "exec/run/device_pool.h"

#include <chrono>

#include "exec/devices/steady_time.h"
#include "profiles/error.h"

namespace frazil {

PairTimes DevicePool::measure_pair(const PairQuestion& question) {
  std::vector<PairTimes> found(states_.size());
  run_job([&](DeviceId device) {
    if (!question.asks(device)) return;
    const std::size_t d = local(device);
    found[d] = frazil::measure_pair(question, *communicators_[d], devices_[d]);
  });
  for (PairTimes& times : found) {
    if (!times.one_way.empty() || !times.reductions.empty()) return std::move(times);
  }
  return {};
}

// As at the end of a step: all devices have come to the barrier of their last reductions.
std::vector<Duration> DevicePool::measure_commit(Step round) {
  ENSURE(commit_ != nullptr, "a world over processes");
  commit_->begin(round, place_.count);
  std::vector<Duration> waits(states_.size());
  run_job([&](DeviceId device) {
    communicators_[local(device)]->barrier();
    const SteadyTime start = std::chrono::steady_clock::now();
    commit_->vote(device, round, *wait_limit_);
    waits[local(device)] = since(start);
  });
  return waits;
}

}  // namespace frazil
