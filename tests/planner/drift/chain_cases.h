#pragma once
// A chain of layers, each a block of its own, whose F, I and W take equal times, and plans that cut
// it over devices in a row.

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// Layer l takes times[l] for each of F, I and W of a micro-batch of any size up to 4, W alone as
// long as I and W, an update 7 ns.
inline ModelProfile make_chain(const std::vector<std::int64_t>& times) {
  ModelProfile profile;
  profile.model = "chain";
  for (std::size_t l = 0; l < times.size(); ++l) {
    const Duration time{times[l]};
    CostSample cost{.micro_batch_size = 1,
                    .forward = time,
                    .forward_frozen = time,
                    .backward_input = time,
                    .backward_weight = time,
                    .backward_weight_alone = time * 2,
                    .stash = Bytes{8}};
    CostSample four = cost;
    four.micro_batch_size = 4;
    const std::string name = "layer " + std::to_string(l);
    profile.blocks.push_back(name);
    profile.layers.push_back({.name = name,
                              .block = BlockId{l},
                              .has_loss = l + 1 == times.size(),
                              .parameters = Bytes{100},
                              .optimizer_state = Bytes{200},
                              .update = Duration{7},
                              .costs = {cost, four}});
    if (l > 0) {
      profile.edges.push_back({LayerId{l - 1}, LayerId{l}, EdgeKind::kGradient, {Bytes{16}}});
    }
  }
  return profile;
}

inline Cluster make_row(const std::vector<std::int64_t>& time_ppm) {
  Cluster cluster =
      make_uniform_cluster(static_cast<int>(time_ppm.size()), Bytes{1'000'000}, Link{});
  for (std::size_t d = 0; d < time_ppm.size(); ++d) cluster.devices[d].time_ppm = time_ppm[d];
  return cluster;
}

// One pipeline of 1f1b over devices 0, 1, ... on so many micro-batches of one sample.
inline Plan make_chain_plan(int layers, const std::vector<int>& cuts, int micro_batches) {
  Plan plan;
  plan.batch_size = micro_batches;
  plan.micro_batch_size = 1;
  plan.mask = FreezeMask::all_active(layers);
  std::vector<LayerId> first;
  std::vector<DeviceId> devices{DeviceId{0}};
  for (const int cut : cuts) {
    first.emplace_back(cut);
    devices.emplace_back(devices.size());
  }
  plan.pipelines = {
      make_pipeline(layers, first, devices, {MicroBatchId{0}, MicroBatchId{micro_batches - 1}})};
  plan.schedule = NamedSchedule{};
  return plan;
}

}  // namespace frazil
