#include "exec/link_probe.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "analysis/ratio_interval.h"
#include "exec/gradient_reduction.h"
#include "exec/in_process_communicator.h"
#include "exec/recorder.h"

namespace frazil {
namespace {

constexpr std::int64_t kElements = 1 << 18;  // 1 MiB of fp32: more than one core's near cache

double nanoseconds_since(SteadyTime start) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

// Half of a round trip, in ns.
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

double reduce_once(Communicator& self, const Tensors& gradient, int repetition) {
  const std::vector<LayerOwner> owners{{DeviceId{0}, {{0, 1}}}, {DeviceId{1}, {{1, 2}}}};
  self.barrier();
  const SteadyTime start = std::chrono::steady_clock::now();
  const TreeNode leaf{self.rank(), self.rank() + 1};
  (void)reduce_exactly({{leaf, gradient}}, gradient, owners, 2, self, {.step = repetition});
  return nanoseconds_since(start);
}

}  // namespace

LinkProbe probe_link(Workers& workers, int repetitions) {
  LinkProbe probe{.link = {}, .repetitions = repetitions};
  if (workers.devices() < 2) return probe;
  const auto communicators = make_in_process_communicators(workers.devices());
  const auto wake = [](const auto& world) {
    return [&world](const std::string& reason) { world[0]->abort(reason); };
  };
  std::vector<double> latencies;
  std::vector<double> reductions;
  workers.run(
      [&](DeviceId device) {
        if (device.value > 1) return;
        Communicator& self = *communicators[device.index()];
        const Tensors gradient{at::ones({kElements})};
        for (int i = 0; i < repetitions; ++i) {
          const double latency = ping_pong(self, i);
          if (device.value == 0) latencies.push_back(latency);
        }
      },
      wake(communicators));
  const auto pair = make_in_process_communicators(2);
  workers.run(
      [&](DeviceId device) {
        if (device.value > 1) return;
        const Tensors gradient{at::ones({kElements})};
        for (int i = 0; i < repetitions; ++i) {
          const double time = reduce_once(*pair[device.index()], gradient, i);
          if (device.value == 0) reductions.push_back(time);
        }
      },
      wake(pair));
  const double latency = trimmed_mean(latencies);
  probe.link.latency = Duration{static_cast<Duration::rep>(latency)};
  // Two owners with one node each: 2 steps, and each sends and receives the whole size once.
  const double moving = std::max(1.0, trimmed_mean(reductions) - 2 * latency);
  constexpr double kBytes = static_cast<double>(kElements) * sizeof(float);
  probe.link.bandwidth = BytesPerSecond{static_cast<std::int64_t>(kBytes / moving * 1e9)};
  return probe;
}

}  // namespace frazil
