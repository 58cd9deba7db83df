#include "planner/named/dynmo.h"

#include <algorithm>
#include <cstdint>

#include "profiles/error.h"

namespace frazil {
namespace {

// The stages into which cuts divide a chain.
struct Stages {
  explicit Stages(const ChainLoads& chain, const std::vector<int>& cuts) {
    int first = 0;
    for (std::size_t s = 0; s <= cuts.size(); ++s) {
      const int end = s < cuts.size() ? cuts[s] : static_cast<int>(chain.time.size());
      ENSURE(first < end, "cuts that ascend within the chain");
      Duration& load = loads.emplace_back(0);
      Bytes& held = memory.emplace_back();
      for (int layer = first; layer < end; ++layer) {
        load += chain.time[static_cast<std::size_t>(layer)];
        held += chain.memory[static_cast<std::size_t>(layer)];
      }
      if (!chain.time_ppm.empty()) load = scale_ppm(load, chain.time_ppm.at(s));
      layers.push_back(end - first);
      first = end;
    }
  }

  std::vector<Duration> loads;  // on the worker of each stage
  std::vector<Bytes> memory;
  std::vector<int> layers;
};

// Fills each stage as far as `bottleneck` and memory allow; none when layers are left over.
std::optional<std::vector<int>> probe(const ChainLoads& chain, int workers, Duration bottleneck) {
  std::vector<int> cuts;
  Duration load{0};
  Bytes held;
  for (std::size_t layer = 0; layer < chain.time.size(); ++layer) {
    const bool alone_fits =
        chain.time[layer] <= bottleneck && chain.memory[layer] <= chain.memory_limit;
    if (!alone_fits) return std::nullopt;
    const bool joins =
        load + chain.time[layer] <= bottleneck && held + chain.memory[layer] <= chain.memory_limit;
    if (!joins) {
      cuts.push_back(static_cast<int>(layer));
      if (static_cast<int>(cuts.size()) == workers) return std::nullopt;
      load = Duration{0};
      held = Bytes{};
    }
    load += chain.time[layer];
    held += chain.memory[layer];
  }
  return cuts;
}

// Returns the variance of the loads times the square of their number.
__extension__ using Wide = __int128;
Wide scaled_variance(const std::vector<Duration>& loads) {
  Wide sum = 0;
  Wide squares = 0;
  for (const Duration load : loads) {
    sum += load.count();
    squares += Wide{load.count()} * load.count();
  }
  return squares * static_cast<Wide>(loads.size()) - sum * sum;
}

// Moves the cut between a stage and its receiver by one layer.
void hand_over(std::vector<int>& cuts, std::size_t from, std::size_t to) {
  if (to > from) {
    --cuts[from];
  } else {
    ++cuts[to];
  }
}

// Returns the layer that a stage would hand to a neighbour.
std::size_t layer_towards(const std::vector<int>& cuts, std::size_t from, std::size_t to) {
  return static_cast<std::size_t>(to > from ? cuts[from] - 1 : cuts[to]);
}

// Finds the lighter of the neighbours that have memory for the layer they would get; the earlier of
// equal ones.
std::optional<std::size_t> find_receiver(const ChainLoads& chain, const std::vector<int>& cuts,
                                         const Stages& stages, std::size_t from) {
  std::optional<std::size_t> lighter;
  const auto consider = [&](std::size_t to) {
    const Bytes needed = stages.memory[to] + chain.memory[layer_towards(cuts, from, to)];
    if (needed > chain.memory_limit) return;
    if (!lighter || stages.loads[to] < stages.loads[*lighter]) lighter = to;
  };
  if (from > 0) consider(from - 1);
  if (from < cuts.size()) consider(from + 1);
  return lighter;
}

// Runs one round of offers and tells whether any offer held.
bool diffuse(const ChainLoads& chain, std::vector<int>& cuts) {
  bool moved = false;
  for (std::size_t from = 0; from <= cuts.size(); ++from) {
    const Stages stages(chain, cuts);
    Duration sum{0};
    for (const Duration load : stages.loads) sum += load;
    const auto count = static_cast<Duration::rep>(stages.loads.size());
    if (stages.loads[from] * count <= sum || stages.layers[from] == 1) continue;
    const auto to = find_receiver(chain, cuts, stages, from);
    if (!to) continue;
    std::vector<int> handed = cuts;
    hand_over(handed, from, *to);
    const Wide before = scaled_variance(stages.loads);
    if (scaled_variance(Stages(chain, handed).loads) >= before) continue;
    cuts = std::move(handed);
    moved = true;
  }
  return moved;
}

}  // namespace

std::optional<std::vector<int>> balance_by_partition(const ChainLoads& chain, int workers) {
  ENSURE(workers >= 1 && !chain.time.empty() && chain.memory.size() == chain.time.size() &&
             chain.time_ppm.empty(),
         "workers that are alike, and layers with times and bytes");
  std::int64_t most = 0;
  for (const Duration time : chain.time) most += time.count();
  auto best = probe(chain, workers, Duration{most});
  if (!best) return std::nullopt;
  std::int64_t least = most / workers;  // no bottleneck lies below the mean
  while (least < most) {
    const std::int64_t middle = least + (most - least) / 2;
    if (auto cuts = probe(chain, workers, Duration{middle})) {
      best = std::move(cuts);
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  return best;
}

std::vector<int> balance_by_diffusion(const ChainLoads& chain, std::vector<int> cuts, int rounds) {
  for (int round = 0; rounds == 0 || round < rounds; ++round) {
    if (!diffuse(chain, cuts)) break;
  }
  return cuts;
}

std::optional<std::vector<int>> pack_stages(const ChainLoads& chain, std::vector<int> cuts,
                                            std::optional<int> workers) {
  const Stages before(chain, cuts);
  const Duration bottleneck = *std::max_element(before.loads.begin(), before.loads.end());
  for (std::size_t first = 0; first < cuts.size();) {
    if (workers && static_cast<int>(cuts.size()) + 1 <= *workers) break;
    const Stages stages(chain, cuts);
    const bool fits = stages.memory[first] + stages.memory[first + 1] <= chain.memory_limit;
    const bool keeps = workers || stages.loads[first] + stages.loads[first + 1] <= bottleneck;
    if (fits && keeps) {
      cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(first));
    } else {
      ++first;
    }
  }
  if (workers && static_cast<int>(cuts.size()) + 1 > *workers) return std::nullopt;
  return cuts;
}

}  // namespace frazil
