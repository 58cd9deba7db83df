#include "planner/search.h"

#include <algorithm>

#include "planner/activity.h"
#include "planner/linear_orders.h"
#include "planner/partition.h"
#include "profiles/error.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {
namespace {

// One point of the search, before its cuts are known.
struct Shape {
  int stages = 1;
  int replicas = 1;
  int micro_batch_size = 1;
  ScheduleKind schedule = ScheduleKind::kGpipe;
};

// Sums over the layers before a position, of one micro-batch or of one gradient set.
struct ChainSums {
  std::vector<Bytes> parameters{Bytes{}};
  std::vector<Bytes> gradients{Bytes{}};
  std::vector<Bytes> optimizer{Bytes{}};
  std::vector<Bytes> stash{Bytes{}};
};

Bytes range_of(const std::vector<Bytes>& sums, int first, int last) {
  return sums[static_cast<std::size_t>(last) + 1] - sums[static_cast<std::size_t>(first)];
}

// Micro-batches that a stage holds at once, of `share`: what its schedule has in flight there.
int most_in_flight(ScheduleKind schedule, int share, int stages, int stage) {
  switch (schedule) {
    case ScheduleKind::kOneForwardOneBackward:
      return std::min(share, warm_up(stages, stages, stage));
    case ScheduleKind::kEagerOneForwardOneBackward:
      return std::min(share, warm_up(2 * stages - 1, stages, stage));
    case ScheduleKind::kZbH1:
      return std::min(share, stages);
    case ScheduleKind::kZbH2:
      return std::min(share, 2 * stages - 1);
    case ScheduleKind::kGpipe:
    case ScheduleKind::kInterleaved:
    case ScheduleKind::kLoopedBfs:
    case ScheduleKind::kZb1p:
    case ScheduleKind::kZb2p:
    case ScheduleKind::kZbV:
    case ScheduleKind::kVHalf:
    case ScheduleKind::kVMin:
    case ScheduleKind::kInterleavedZb:
    case ScheduleKind::kDualPipe:
    case ScheduleKind::kDualPipeV:
    case ScheduleKind::kChimera:
    case ScheduleKind::kBitPipe:
    case ScheduleKind::kHanayo:
    case ScheduleKind::kTwoBp:
    case ScheduleKind::kPipeDream:
    case ScheduleKind::kPipeDream2Bw:
    case ScheduleKind::kVaruna:
      return share;
  }
  return share;
}

// How a partition may treat memory. The receive buffer of a stage depends on where it is cut, so it
// is no sum over layers: it is left out first, and then charged at its largest everywhere.
enum class MemoryRule { kWithoutReceive, kWithLargestReceive, kIgnored };

class Proposer {
 public:
  Proposer(const ModelProfile& profile, const Cluster& cluster, const SearchOptions& options)
      : profile_(profile),
        cluster_(cluster),
        options_(options),
        activity_(find_activity(profile, options.mask)),
        hash_(model_hash(profile)) {}

  // The plan of a shape with the best cuts under `rule`; none when no cut fits.
  std::optional<Plan> propose(const Shape& shape, MemoryRule rule) const {
    Plan plan;
    plan.model_hash = hash_;
    plan.batch_size = options_.batch_size;
    plan.micro_batch_size = shape.micro_batch_size;
    plan.mask = options_.mask;
    plan.reduction = options_.reduction;
    plan.schedule = NamedSchedule{.kind = shape.schedule, .in_flight = {}};
    const int micro_batches = plan.micro_batches();
    const int layers = static_cast<int>(profile_.layers.size());
    int first = 0;
    for (int r = 0; r < shape.replicas; ++r) {
      const int share = micro_batches / shape.replicas + (r < micro_batches % shape.replicas);
      const MicroBatches owned{MicroBatchId{first}, MicroBatchId{first + share - 1}};
      first += share;
      std::vector<DeviceId> devices(static_cast<std::size_t>(shape.stages));
      for (int s = 0; s < shape.stages; ++s) {
        devices[static_cast<std::size_t>(s)] = DeviceId{r * shape.stages + s};
      }
      const auto cut =
          partition_into(costs(shape, devices, owned, micro_batches, rule), shape.stages);
      if (!cut) return std::nullopt;
      plan.pipelines.push_back(make_pipeline(layers, cut->cuts, devices, owned));
    }
    return plan;
  }

 private:
  Duration load_of(std::size_t layer, int size) const {
    const CostSample cost = cost_at(profile_.layers[layer], size).cost;
    const LayerActivity& active = activity_.layers[layer];
    const bool backward = active.input_gradient || active.weight_gradient;
    Duration load = backward ? cost.forward : cost.forward_frozen;
    if (active.input_gradient) load += cost.backward_input;
    if (active.weight_gradient) {
      load += active.input_gradient ? cost.backward_weight : cost.backward_weight_alone;
    }
    return load;
  }

  // What crosses a cut after layer i, both ways, per sample.
  std::vector<std::pair<Bytes, Bytes>> crossings() const {
    std::vector<std::pair<Bytes, Bytes>> crossing(profile_.layers.size() - 1);
    for (std::size_t e = 0; e < profile_.edges.size(); ++e) {
      const Edge& edge = profile_.edges[e];
      for (std::size_t cut = edge.from.index(); cut < edge.to.index(); ++cut) {
        crossing[cut].first += edge.bytes(1);
        if (activity_.edge_carries[e]) crossing[cut].second += edge.bytes(1);
      }
    }
    return crossing;
  }

  // Time of a boundary on the slowest link between neighbouring stages.
  std::vector<Duration> boundary_times(const std::vector<DeviceId>& devices, int size) const {
    std::vector<Duration> times;
    for (const auto& [down, up] : crossings()) {
      Duration slowest{0};
      for (std::size_t s = 0; s + 1 < devices.size(); ++s) {
        const Link there = cluster_.link(devices[s], devices[s + 1]);
        const Link back = cluster_.link(devices[s + 1], devices[s]);
        Duration time = down * size / there.bandwidth + there.latency;
        if (up.count > 0) time += up * size / back.bandwidth + back.latency;
        slowest = std::max(slowest, time);
      }
      times.push_back(slowest);
    }
    return times;
  }

  ChainSums sum_up(int size) const {
    ChainSums sums;
    const auto append = [](std::vector<Bytes>& list, Bytes next) {
      list.push_back(list.back() + next);
    };
    for (std::size_t l = 0; l < profile_.layers.size(); ++l) {
      const Layer& layer = profile_.layers[l];
      const bool updated = activity_.layers[l].weight_gradient;
      append(sums.parameters, layer.parameters);
      append(sums.gradients, updated ? layer.parameters : Bytes{});
      append(sums.optimizer, updated ? layer.optimizer_state : Bytes{});
      append(sums.stash,
             activity_.backward(LayerId{l}) ? cost_at(layer, size).cost.kept(updated) : Bytes{});
    }
    return sums;
  }

  Bytes largest_receive(int size) const {
    Bytes largest;
    for (const auto& [down, up] : crossings()) largest = std::max(largest, down * size);
    return largest;
  }

  ChainCosts costs(const Shape& shape, const std::vector<DeviceId>& devices,
                   const MicroBatches& owned, int micro_batches, MemoryRule rule) const {
    ChainCosts costs;
    const int size = shape.micro_batch_size;
    for (std::size_t l = 0; l < profile_.layers.size(); ++l) {
      costs.layer.push_back(load_of(l, size));
    }
    costs.boundary = boundary_times(devices, size);
    for (const DeviceId device : devices) {
      costs.time_ppm.push_back(cluster_.devices[device.index()].time_ppm);
    }
    if (rule == MemoryRule::kIgnored) return costs;
    for (const DeviceId device : devices) {
      costs.memory_limit.push_back(cluster_.devices[device.index()].memory_limit);
    }
    const bool exact = options_.reduction == ReductionMode::kExact;
    const int sets =
        exact ? held_gradient_sets({{owned.first.value, owned.last.value + 1}}, micro_batches) : 1;
    const Bytes receive = rule == MemoryRule::kWithLargestReceive ? largest_receive(size) : Bytes{};
    costs.memory = [sums = sum_up(size), sets, receive, share = owned.count(),
                    schedule = shape.schedule](int stage, int stages, int first, int last) {
      const int in_flight = most_in_flight(schedule, share, stages, stage);
      return range_of(sums.parameters, first, last) + range_of(sums.optimizer, first, last) +
             range_of(sums.gradients, first, last) * sets +
             range_of(sums.stash, first, last) * in_flight + receive;
    };
    return costs;
  }

  const ModelProfile& profile_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  Activity activity_;
  std::string hash_;
};

Candidate find_candidate(const Shape& shape, const Proposer& proposer, const ModelProfile& profile,
                         const Cluster& cluster, bool clip) {
  for (const MemoryRule rule : {MemoryRule::kWithoutReceive, MemoryRule::kWithLargestReceive}) {
    if (auto plan = proposer.propose(shape, rule)) {
      Candidate candidate = judge_plan(*std::move(plan), profile, cluster, clip);
      if (!candidate.infeasible) return candidate;
    }
  }
  auto plan = proposer.propose(shape, MemoryRule::kIgnored);
  ENSURE(plan.has_value(), "without memory limits every chain can be cut");
  return judge_plan(*std::move(plan), profile, cluster, clip);
}

std::vector<Shape> list_shapes(const ModelProfile& profile, const Cluster& cluster,
                               const SearchOptions& options) {
  const auto devices = static_cast<int>(cluster.devices.size());
  const auto layers = static_cast<int>(profile.layers.size());
  const int most_stages =
      std::min({devices, layers, options.max_stages > 0 ? options.max_stages : devices});
  const int most_replicas = options.max_replicas > 0 ? options.max_replicas : devices;
  std::vector<Shape> shapes;
  for (int stages = 1; stages <= most_stages; ++stages) {
    for (const int size : options.micro_batch_sizes) {
      const int micro_batches = (options.batch_size + size - 1) / size;
      const int replicas = std::min({devices / stages, most_replicas, micro_batches});
      for (int r = 1; r <= replicas; ++r) {
        for (const ScheduleKind kind : options.schedules) shapes.push_back({stages, r, size, kind});
      }
    }
  }
  return shapes;
}

}  // namespace

std::vector<int> measured_sizes(const ModelProfile& profile, int batch_size) {
  int smallest = 1;
  int largest = batch_size;
  for (const Layer& layer : profile.layers) {
    smallest = std::max(smallest, layer.costs.front().micro_batch_size);
    largest = std::min(largest, layer.costs.back().micro_batch_size);
  }
  std::vector<int> sizes;
  for (int size = 1; size <= largest && size <= batch_size; size *= 2) {
    if (size >= smallest) sizes.push_back(size);
  }
  if (sizes.empty()) sizes.push_back(std::min(smallest, batch_size));
  return sizes;
}

Ranking search_plans(const ModelProfile& profile, const Cluster& cluster,
                     const SearchOptions& options) {
  ENSURE(options.batch_size >= 1, "a batch of at least one sample");
  for (const int size : options.micro_batch_sizes) {
    ENSURE(size >= 1, "micro-batches of at least one sample");
  }
  const Proposer proposer(profile, cluster, options);
  Ranking ranking;
  for (const Shape& shape : list_shapes(profile, cluster, options)) {
    ranking.candidates.push_back(find_candidate(shape, proposer, profile, cluster, options.clip));
  }
  rank(ranking.candidates);
  return ranking;
}

}  // namespace frazil
