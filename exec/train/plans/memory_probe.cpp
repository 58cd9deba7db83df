#include "exec/train/plans/memory_probe.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "exec/devices/steady_time.h"
#include "exec/devices/workers.h"
#include "exec/state/layer_state.h"
#include "exec/state/state_memory.h"
#include "exec/tensors/tensor_bytes.h"

namespace frazil {
namespace {

constexpr std::int64_t kMostCopied = std::int64_t{1} << 26;  // by a device
constexpr std::int64_t kMostHashed = std::int64_t{1} << 29;
constexpr int kRounds = 4;  // the first does not count

// Returns a state of each layer that is held in this process, by layer.
std::vector<const LayerState*> list_held(const std::vector<DeviceState>& states) {
  std::map<LayerId, const LayerState*> held;
  for (const DeviceState& device : states) {
    for (const auto& [layer, state] : device) held.emplace(layer, &state);
  }
  std::vector<const LayerState*> list;
  for (const auto& [layer, state] : held) list.push_back(state);
  return list;
}

// Lists the parameters of the run's layers, from layer `begin` on and around the end, until `most`
// bytes are full. The first layer is always listed.
std::vector<Tensors> list_layers(const Run& run, std::size_t begin, std::int64_t most) {
  const std::vector<const LayerState*> holders = list_held(run.pool().states());
  std::vector<Tensors> layers;
  std::int64_t all = 0;
  for (std::size_t l = 0; l < holders.size(); ++l) {
    const Tensors& parameters = holders[(begin + l) % holders.size()]->parameters;
    all += count_bytes(parameters);
    if (all > most && !layers.empty()) break;
    layers.push_back(parameters);
  }
  return layers;
}

using Layers = std::vector<std::vector<Tensors>>;  // by device

std::int64_t bytes_of_layers(const Layers& layers, int devices) {
  std::int64_t bytes = 0;
  for (int d = 0; d < devices; ++d) {
    for (const Tensors& layer : layers[static_cast<std::size_t>(d)]) bytes += count_bytes(layer);
  }
  return bytes;
}

template <class Work>
double seconds_of(const Work& work) {
  const SteadyTime start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(since(start)).count();
}

BytesPerSecond rate_of(std::int64_t bytes, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const double rate = static_cast<double>(bytes) / std::max(1e-9, seconds[seconds.size() / 2]);
  return BytesPerSecond{std::max<std::int64_t>(1, static_cast<std::int64_t>(rate))};
}

// Returns the rate at which the first `copying` devices copy, all together.
BytesPerSecond copy_rate(Workers& workers, const Layers& layers, int copying,
                         ProcessorCaches& caches) {
  const StateMemory memory = StateMemory::keeping();
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    Layers copies(layers.size());
    if (round > 0) caches.fill();
    const double time = seconds_of([&] {
      workers.run([&](DeviceId device) {
        if (device.value >= copying) return;
        for (const Tensors& layer : layers[device.index()]) {
          copies[device.index()].push_back(memory.copy(layer));
        }
      });
    });
    if (round > 0) seconds.push_back(time);
  }
  return rate_of(bytes_of_layers(layers, copying), seconds);
}

BytesPerSecond hash_rate(const std::vector<Tensors>& layers, ProcessorCaches& caches) {
  LayerState state;
  for (const Tensors& layer : layers) {
    state.parameters.insert(state.parameters.end(), layer.begin(), layer.end());
  }
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    if (round > 0) caches.fill();
    const double time = seconds_of([&] { (void)hash_states({&state}); });
    if (round > 0) seconds.push_back(time);
  }
  return rate_of(bytes_of(state).count, seconds);
}

}  // namespace

OneMemory probe_memory(const Run& run, ProcessorCaches& caches) {
  const int devices = run.devices().count();
  const std::size_t apart = run.model().layers.size() / static_cast<std::size_t>(devices);
  Layers layers;
  for (int d = 0; d < devices; ++d) {
    layers.push_back(list_layers(run, apart * static_cast<std::size_t>(d), kMostCopied));
  }
  Workers workers(devices);
  return {.copied_alone = copy_rate(workers, layers, 1, caches),
          .copied_together = copy_rate(workers, layers, devices, caches),
          .hashed = hash_rate(list_layers(run, 0, kMostHashed), caches)};
}

}  // namespace frazil
