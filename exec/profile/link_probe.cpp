#include "exec/profile/link_probe.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/ratio_interval.h"
#include "exec/communication/device_communicator.h"
#include "exec/communication/in_process_communicator.h"
#include "exec/measuring/recorder.h"
#include "exec/reduction/gradient_reduction.h"

namespace frazil {
namespace {

constexpr std::int64_t kElements = 1 << 18;  // 1 MiB of fp32: more than one core's near cache

double nanoseconds_since(SteadyTime start) { return static_cast<double>(since(start).count()); }

// Returns half the time of a round trip, in ns.
double ping_pong(Communicator& self, int repetition) {
  const int peer = 1 - self.rank();
  const Tag ping{.index = 0, .step = repetition};
  const Tag pong{.index = 1, .step = repetition};
  const SteadyTime start = std::chrono::steady_clock::now();
  if (self.rank() == 0) {
    self.send(peer, ping, {});
    (void)self.receive(peer, pong);
  } else {
    (void)self.receive(peer, ping);
    self.send(peer, pong, {});
  }
  return nanoseconds_since(start) / 2;
}

double reduce_once(Communicator& self, const ComputeDevice& device, const Tensors& gradient,
                   int repetition) {
  const std::vector<LayerOwner> owners{{DeviceId{0}, {{0, 1}}}, {DeviceId{1}, {{1, 2}}}};
  self.barrier();
  const SteadyTime start = std::chrono::steady_clock::now();
  const TreeNode leaf{self.rank(), self.rank() + 1};
  (void)reduce_exactly({{leaf, gradient}}, gradient, owners, 2, self, {.step = repetition});
  device.finish();
  return nanoseconds_since(start);
}

}  // namespace

LinkProbe probe_link(const ComputeDevices& devices, int repetitions) {
  LinkProbe probe{.link = {}, .repetitions = repetitions};
  if (devices.count() < 2) return probe;
  std::vector<double> latencies;
  std::vector<double> reductions;
  Workers workers(devices.count());
  workers.run([&](DeviceId device) { devices[device.index()].enter(); });
  const auto run_both = [&](int ranks, const auto& job) {
    const auto world = on_devices(make_in_process_communicators(ranks), devices);
    workers.run(
        [&](DeviceId device) {
          if (device.value < 2) job(*world[device.index()], devices[device.index()]);
        },
        [&](const std::string& reason) { world[0]->abort(reason); });
  };
  run_both(devices.count(), [&](Communicator& self, const ComputeDevice&) {
    for (int i = 0; i < repetitions; ++i) {
      const double latency = ping_pong(self, i);
      if (self.rank() == 0) latencies.push_back(latency);
    }
  });
  run_both(2, [&](Communicator& self, const ComputeDevice& device) {
    const Tensors gradient{at::ones({kElements}, at::TensorOptions(device.place()))};
    for (int i = 0; i < repetitions; ++i) {
      const double time = reduce_once(self, device, gradient, i);
      if (self.rank() == 0) reductions.push_back(time);
    }
  });
  const double latency = trimmed_mean(latencies);
  probe.link.latency = Duration{static_cast<Duration::rep>(latency)};
  // A reduction of two owners with one node each takes 2 steps, and each owner sends and receives
  // the whole size once.
  const double moving = std::max(1.0, trimmed_mean(reductions) - 2 * latency);
  constexpr double kBytes = static_cast<double>(kElements) * sizeof(float);
  probe.link.bandwidth = BytesPerSecond{static_cast<std::int64_t>(kBytes / moving * 1e9)};
  return probe;
}

}  // namespace frazil
