#include "planner/reproduce/rtx5000.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr double kForwardOf64 = 471e6;  // ns
constexpr double kForwardOf320 = 2313e6;
constexpr double kPerSample = (kForwardOf320 - kForwardOf64) / (320 - 64);
constexpr double kToStart = kForwardOf64 - 64 * kPerSample;
constexpr double kBackwardPerForward = 1.65;
constexpr int kSamplesThatFit = 63;
constexpr BytesPerSecond kDeviceBandwidth{448'000'000'000};
constexpr int kUpdatePasses = 5;
constexpr BytesPerSecond kPcie{15'754'000'000};
constexpr std::int64_t kInfiniBand = 5'000'000'000;
constexpr BytesPerSecond kCacheOfAProcess{kCacheOfAHost.count / 8};
constexpr int kCopiesOfARead = 3;
constexpr BytesPerSecond kWritesOfAProcess{kCacheOfAProcess.count * kCopiesOfARead};
constexpr std::int64_t kFloat = 4;
constexpr int kLargestMicroBatch = 512;

// Counts the multiply-adds of a unit for one sample.
struct Work {
  double all = 0;
  // Multiply-adds that read the unit's input; the first active unit computes no gradient for them.
  double of_input = 0;
};

Work count_layer_work(const ParameterUnit& unit, const TransformerShape& shape, double positions) {
  const double hidden = shape.hidden;
  if (unit.name.ends_with(".attention")) {
    const double projection = positions * hidden * hidden;
    return {4 * projection + 2 * positions * positions * hidden, 3 * projection};
  }
  const double projection = positions * hidden * shape.intermediate;
  return {2 * projection, projection};
}

std::vector<Work> count_vision_work(const VisionShape& shape) {
  const double hidden = shape.transformer.hidden;
  std::vector<Work> works;
  for (const ParameterUnit& unit : list_vision_units(shape)) {
    Work work;
    if (unit.layer == 0) {
      work.all = (shape.positions() - 1) * 3.0 * shape.patch * shape.patch * hidden;
    } else if (unit.layer <= shape.transformer.layers) {
      work = count_layer_work(unit, shape.transformer, shape.positions());
    } else if (unit.name == "head") {
      work.all = hidden * shape.classes;
    }
    works.push_back(work);
  }
  return works;
}

std::vector<Work> count_bert_work(const BertShape& shape, BertTask task, int sequence) {
  std::vector<Work> works;
  for (const ParameterUnit& unit : list_bert_units(shape, task)) {
    const bool in_layer = unit.layer >= 1 && unit.layer <= shape.transformer.layers;
    works.push_back(in_layer ? count_layer_work(unit, shape.transformer, sequence) : Work{});
  }
  return works;
}

// Returns the multiply-adds of ViT-B/16 with 1000 classes, the model that was measured.
double measured_work() {
  double sum = 0;
  for (const Work& work : count_vision_work(vit_b16(1000))) sum += work.all;
  return sum;
}

Duration to_ns(double ns) { return Duration{std::llround(ns)}; }

// Returns the bytes that ViT-B/16 keeps for the backward of a sample, per multiply-add.
double kept_bytes_per_work() {
  double parameters = 0;
  for (const ParameterUnit& unit : list_vision_units(vit_b16(1000))) {
    parameters += static_cast<double>(unit.parameters) * kFloat;
  }
  const double room =
      static_cast<double>((kRtx5000Memory - kRtx5000Context).count) - 3 * parameters;
  return room / kSamplesThatFit / measured_work();
}

CostSample make_cost(int samples, const Work& work) {
  const double share = work.all / measured_work();
  const double to_start = kToStart / static_cast<double>(list_vision_units(vit_b16(1000)).size());
  const double forward = to_start + samples * kPerSample * share;
  const double backward = kBackwardPerForward * forward;
  const double input = backward / 2;
  const double spared = work.all > 0 ? input * work.of_input / work.all : 0;
  CostSample cost;
  cost.micro_batch_size = samples;
  cost.forward = cost.forward_frozen = to_ns(forward);
  cost.backward_input = to_ns(input);
  cost.backward_weight = to_ns(backward - input);
  cost.backward_weight_alone = to_ns(backward - spared);
  cost.stash = Bytes{std::llround(samples * kept_bytes_per_work() * work.all)};
  return cost;
}

ModelProfile make_profile(const std::string& name, const std::vector<ParameterUnit>& units,
                          const std::vector<Work>& works, Bytes features, Bytes input) {
  ModelProfile profile;
  profile.model = name;
  profile.input_bytes_per_sample = input;
  profile.provenance = {{"device", "Quadro RTX 5000"}, {"source", "He et al. 2021"}};
  for (std::size_t u = 0; u < units.size(); ++u) {
    const ParameterUnit& unit = units[u];
    if (unit.layer == static_cast<int>(profile.blocks.size())) {
      profile.blocks.push_back("block" + std::to_string(unit.layer));
    }
    Layer layer;
    layer.name = unit.name;
    layer.block = BlockId{unit.layer};
    layer.has_loss = u + 1 == units.size();
    layer.parameters = Bytes{unit.parameters * kFloat};
    layer.optimizer_state = layer.parameters;
    layer.update = layer.parameters * kUpdatePasses / kDeviceBandwidth;
    layer.costs = {make_cost(1, works[u]), make_cost(kLargestMicroBatch, works[u])};
    profile.layers.push_back(std::move(layer));
    if (u > 0) {
      profile.edges.push_back({LayerId{u - 1}, LayerId{u}, EdgeKind::kGradient, {features}});
    }
  }
  return profile;
}

}  // namespace

Cluster make_rtx5000_cluster(int devices_per_host, int rings, int hosts) {
  ENSURE(rings >= 1, "a ring at least");
  Cluster cluster;
  cluster.default_link.bandwidth = kPcie;
  for (int h = 0; h < hosts; ++h) {
    cluster.hosts.push_back({.name = "host" + std::to_string(h), .memory = {}});
    for (int d = 0; d < devices_per_host; ++d) {
      cluster.devices.push_back({.name = "gpu" + std::to_string(h * devices_per_host + d),
                                 .host = HostId{h},
                                 .memory_limit = kRtx5000Memory - kRtx5000Context});
    }
  }
  for (std::size_t from = 0; from < cluster.devices.size(); ++from) {
    for (std::size_t to = 0; to < cluster.devices.size(); ++to) {
      if (cluster.devices[from].host == cluster.devices[to].host) continue;
      cluster.links.push_back(
          {DeviceId{from}, DeviceId{to}, {Duration{0}, BytesPerSecond{kInfiniBand / rings}}});
    }
  }
  return cluster;
}

ModelProfile make_rtx5000_vision(const VisionShape& shape) {
  const Bytes features{std::int64_t{shape.positions()} * shape.transformer.hidden * kFloat};
  const Bytes input{std::int64_t{3} * shape.image * shape.image * kFloat};
  return make_profile("vit", list_vision_units(shape), count_vision_work(shape), features, input);
}

ModelProfile make_rtx5000_bert(const BertShape& shape, BertTask task, int sequence) {
  const Bytes features{std::int64_t{sequence} * shape.transformer.hidden * kFloat};
  constexpr std::int64_t kToken = 8;
  return make_profile("bert", list_bert_units(shape, task), count_bert_work(shape, task, sequence),
                      features, Bytes{sequence * kToken});
}

ModelProfile read_from_cache(const ModelProfile& profile, int layers) {
  ENSURE(layers >= 1 && layers + 1 < static_cast<int>(profile.blocks.size()),
         "the cache holds what frozen layers make");
  ModelProfile rest = profile;
  rest.blocks.erase(rest.blocks.begin() + 1, rest.blocks.begin() + layers + 1);
  rest.blocks.front() = "cache";
  const Bytes features = profile.edges.front().bytes(1);
  Layer reader;
  reader.name = "cached features";
  for (const int samples : {1, kLargestMicroBatch}) {
    CostSample cost;
    cost.micro_batch_size = samples;
    cost.forward = cost.forward_frozen = features * samples / kCacheOfAProcess;
    reader.costs.push_back(cost);
  }
  rest.layers = {reader};
  rest.edges.clear();
  for (Layer layer : profile.layers) {
    if (layer.block <= BlockId{layers}) continue;
    layer.block.value -= layers;
    rest.edges.push_back({LayerId{rest.layers.size() - 1},
                          LayerId{rest.layers.size()},
                          EdgeKind::kGradient,
                          {features}});
    rest.layers.push_back(std::move(layer));
  }
  rest.input_bytes_per_sample = features;
  return rest;
}

ModelProfile write_to_cache(const ModelProfile& profile, BlockId block) {
  ModelProfile writing = profile;
  const auto last = std::find_if(writing.layers.rbegin(), writing.layers.rend(),
                                 [&](const Layer& layer) { return layer.block == block; });
  ENSURE(last != writing.layers.rend(), "a block with layers");
  const Bytes features = profile.edges.front().bytes(1);
  for (CostSample& cost : last->costs) {
    cost.forward_frozen += features * cost.micro_batch_size / kWritesOfAProcess;
  }
  return writing;
}

ModelProfile run_frozen_at_once(const ModelProfile& profile, int samples) {
  ModelProfile at_once = profile;
  for (Layer& layer : at_once.layers) {
    const Duration all = cost_at(layer, samples).cost.forward_frozen;
    for (CostSample& cost : layer.costs) {
      cost.forward_frozen = all * cost.micro_batch_size / samples;
    }
  }
  return at_once;
}

}  // namespace frazil
