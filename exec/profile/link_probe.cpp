#include "exec/profile/link_probe.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/ratio_interval.h"
#include "exec/communication/device_communicator.h"
#include "exec/communication/in_process_communicator.h"

namespace frazil {
namespace {

double mean_of(const std::vector<Duration>& times) {
  std::vector<double> counts;
  for (const Duration time : times) counts.push_back(static_cast<double>(time.count()));
  return trimmed_mean(counts);
}

}  // namespace

Duration find_latency(const PairTimes& times) {
  return Duration{static_cast<Duration::rep>(mean_of(times.one_way.at(0)))};
}

Link find_link(const PairTimes& times) {
  Link link;
  const double latency = mean_of(times.one_way.at(0));
  link.latency = find_latency(times);
  // A reduction of two owners with one node each takes 2 steps, and each owner sends and receives
  // the whole size once.
  const double moving = std::max(1.0, mean_of(times.reductions) - 2 * latency);
  link.bandwidth =
      BytesPerSecond{static_cast<std::int64_t>(static_cast<double>(kReducedBytes) / moving * 1e9)};
  return link;
}

LinkProbe probe_link(const ComputeDevices& devices, int repetitions) {
  LinkProbe probe{.link = {}, .repetitions = repetitions};
  if (devices.count() < 2) return probe;
  Workers workers(devices.count());
  workers.run([&](DeviceId device) { devices[device.index()].enter(); });
  const auto ask = [&](int ranks, const PairQuestion& question) {
    const auto world = on_devices(make_in_process_communicators(ranks), devices);
    PairTimes times;
    workers.run(
        [&](DeviceId device) {
          if (!question.asks(device)) return;
          PairTimes found = measure_pair(question, *world[device.index()], devices[device.index()]);
          if (device == question.one) times = std::move(found);
        },
        [&](const std::string& reason) { world[0]->abort(reason); });
    return times;
  };
  PairTimes times = ask(devices.count(), {.sizes = {0}, .repetitions = repetitions});
  times.reductions = ask(2, {.sizes = {}, .reductions = repetitions}).reductions;
  probe.link = find_link(times);
  return probe;
}

}  // namespace frazil
