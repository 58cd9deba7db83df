#include "planner/reproduce/headlines/balance_headlines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/named/dynmo.h"
#include "planner/named/uniform.h"
#include "planner/partition/layer_loads.h"
#include "planner/partition/partition.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/reproduce/pipetransformer_runs.h"
#include "profiles/error.h"

namespace frazil {
namespace {

double ratio(Duration slow, Duration fast) {
  return static_cast<double>(slow.count()) / static_cast<double>(fast.count());
}

FreezeMask freeze(int blocks, int frozen) {
  if (frozen == 0) return FreezeMask::all_active(blocks);
  return FreezeMask::frozen_prefix(blocks, BlockId{frozen - 1});
}

std::vector<LayerId> to_layers(const std::vector<int>& cuts) {
  std::vector<LayerId> layers;
  layers.reserve(cuts.size());
  for (const int cut : cuts) layers.push_back(LayerId{cut});
  return layers;
}

std::vector<LayerId> balance_like_dynmo(const ModelProfile& profile, const FreezeMask& mask,
                                        int devices) {
  ChainLoads chain;
  for (const LayerLoad& load : find_layer_loads(profile, find_activity(profile, mask), 1)) {
    chain.time.push_back(load.time());
    chain.memory.push_back(Bytes{});
  }
  const auto cuts = balance_by_partition(chain, devices);
  ENSURE(cuts.has_value(), "memory without a limit");
  return to_layers(*cuts);
}

ResultRow compare_dynmo() {
  constexpr int kLayers = 24;
  constexpr int kDevices = 8;
  constexpr int kMicroBatches = 4 * kDevices;
  const ModelProfile profile =
      make_balance_chain(std::vector<Duration>(kLayers, std::chrono::milliseconds{1}));
  const std::vector<LayerId> uniform = to_layers(cut_uniformly(kLayers, kDevices));
  // Returns the time of a step under the cut that stays, and under the one that follows.
  const auto time_both = [&](int frozen) {
    const FreezeMask mask = freeze(kLayers, frozen);
    return std::pair(
        time_cut(profile, uniform, mask, kMicroBatches),
        time_cut(profile, balance_like_dynmo(profile, mask, kDevices), mask, kMicroBatches));
  };
  double most = 0;
  for (int frozen = 0; frozen < kLayers; ++frozen) {
    const auto [still, moved] = time_both(frozen);
    most = std::max(most, ratio(still, moved));
  }
  Duration still{0};
  Duration moved{0};
  // The last layer stays active, so that there is something to train.
  for (const int scheduled : freeze_schedule(kLayers, kPublishedAlpha, kPublishedEpochs)) {
    const auto [of_still, of_moved] = time_both(std::min(scheduled, kLayers - 1));
    still += of_still;
    moved += of_moved;
  }
  return {
      "DynMo over a static cut, layers freezing, at most", 2.23, most, RowRole::kPrediction,
      fmt::format("{} equal layers, F = I = W, {} devices and {} micro-batches are assumed, and "
                  "the frozen prefix that gives most, for no trace was published; over "
                  "PipeTransformer's trace (alpha 1/3, {} epochs) it is {:.2f}",
                  kLayers, kDevices, kMicroBatches, kPublishedEpochs, ratio(still, moved))};
}

std::vector<LayerId> balance_like_autopipe(const ModelProfile& profile, int devices) {
  const Activity activity =
      find_activity(profile, freeze(static_cast<int>(profile.blocks.size()), 0));
  ChainCosts costs;
  for (const LayerLoad& load : find_layer_loads(profile, activity, 1)) {
    costs.layer.push_back(load.time());
  }
  costs.boundary.assign(costs.layer.size() - 1, Duration{0});
  costs.time_ppm.assign(static_cast<std::size_t>(devices), 1'000'000);
  const auto partition = partition_into(costs, devices);
  ENSURE(partition.has_value(), "at least as many layers as stages");
  return partition->cuts;
}

ResultRow compare_autopipe() {
  constexpr int kLayers = 24;
  constexpr int kDevices = 4;
  constexpr int kMicroBatches = 2 * kDevices;
  const ModelProfile profile =
      make_balance_chain(list_gpt_forwards(kLayers, /*hidden=*/1024, /*sequence=*/1024,
                                           /*vocabulary=*/50'257));
  // Megatron-LM: the embedding with the first layers, the head with the last.
  std::vector<LayerId> uniform;
  for (const int layer : cut_uniformly(kLayers, kDevices))
    uniform.push_back(LayerId{1 + 2 * layer});
  const FreezeMask mask = freeze(static_cast<int>(profile.blocks.size()), 0);
  const Duration theirs = time_cut(profile, uniform, mask, kMicroBatches);
  const Duration balanced =
      time_cut(profile, balance_like_autopipe(profile, kDevices), mask, kMicroBatches);
  return {"AutoPipe over Megatron-LM, at most", 1.30, ratio(theirs, balanced), RowRole::kPrediction,
          fmt::format("GPT-2 345M by its multiply-adds, {} devices and {} micro-batches are "
                      "assumed; its cut alone, without slicing micro-batches as a step begins",
                      kDevices, kMicroBatches)};
}

}  // namespace

ModelProfile make_balance_chain(const std::vector<Duration>& forward) {
  ModelProfile profile;
  profile.model = "chain";
  for (std::size_t l = 0; l < forward.size(); ++l) {
    const std::string name = fmt::format("layer{}", l);
    profile.blocks.push_back(name);
    Layer layer;
    layer.name = name;
    layer.block = BlockId{l};
    layer.parameters = Bytes{4};
    layer.has_loss = l + 1 == forward.size();
    CostSample cost;
    cost.micro_batch_size = 1;
    cost.forward = cost.forward_frozen = cost.backward_input = cost.backward_weight =
        cost.backward_weight_alone = forward[l];
    layer.costs = {cost};
    profile.layers.push_back(std::move(layer));
    if (l > 0)
      profile.edges.push_back({LayerId{l - 1}, LayerId{l}, EdgeKind::kGradient, {Bytes{1}}});
  }
  return profile;
}

std::vector<Duration> list_gpt_forwards(int layers, std::int64_t hidden, std::int64_t sequence,
                                        std::int64_t vocabulary) {
  const auto time_of = [](std::int64_t multiply_adds) { return Duration{multiply_adds / 1000}; };
  std::vector<Duration> forwards{Duration{0}};
  for (int layer = 0; layer < layers; ++layer) {
    forwards.push_back(time_of(4 * hidden * hidden + 2 * sequence * hidden));
    forwards.push_back(time_of(8 * hidden * hidden));
  }
  forwards.push_back(time_of(hidden * vocabulary));
  return forwards;
}

Duration time_cut(const ModelProfile& profile, const std::vector<LayerId>& cuts,
                  const FreezeMask& mask, int micro_batches) {
  const auto stages = static_cast<int>(cuts.size()) + 1;
  const Cluster cluster =
      make_uniform_cluster(stages, Bytes{std::int64_t{1} << 40}, {Duration{0}, BytesPerSecond{0}});
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(stages));
  for (int d = 0; d < stages; ++d) devices.push_back(DeviceId{d});
  Plan plan;
  plan.batch_size = micro_batches;
  plan.micro_batch_size = 1;
  plan.mask = mask;
  plan.schedule = NamedSchedule{};
  plan.pipelines = {make_pipeline(static_cast<int>(profile.layers.size()), cuts, devices,
                                  {MicroBatchId{0}, MicroBatchId{micro_batches - 1}})};
  return simulate_step(plan, {profile, cluster}).simulation.makespan;
}

std::vector<ResultRow> list_balance_headlines() { return {compare_dynmo(), compare_autopipe()}; }

}  // namespace frazil
