#include "planner/interop/sailor_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profiles/error.h"
#include "sim/collective_cost.h"

namespace frazil {
namespace {

DeviceId device_at(const SailorPlan& plan, int replica, std::size_t stage) {
  return DeviceId{static_cast<std::size_t>(replica) * plan.stages.size() + stage};
}

const BandwidthFit& find_fit(const SailorLinks& links) {
  const auto fit = links.between_nodes.find(1);
  if (fit != links.between_nodes.end()) return fit->second;
  throw InputError("Sailor's bandwidths", 0, "none of one sender between nodes", "that of \"1\"");
}

BytesPerSecond to_bandwidth(Bytes message, double seconds) {
  return {std::max<std::int64_t>(std::llround(static_cast<double>(message.count) / seconds), 1)};
}

// Returns the bytes that a stage sends to the next for one micro-batch.
Bytes find_message(const SailorPlan& plan, std::size_t stage, const ModelProfile& profile) {
  const LayerId last = plan.stages[stage].back();
  Bytes message;
  for (const Edge& edge : profile.edges) {
    if (edge.from == last) message += edge.bytes(plan.micro_batch_size);
  }
  return message;
}

Link make_boundary_link(Bytes message, const BandwidthFit& fit, const SailorLinkScale& scale) {
  const auto measured = static_cast<double>(bandwidth_at(fit, message).count);
  const double wire = static_cast<double>(message.count) / measured;
  const double overhead = static_cast<double>(scale.message_overhead.count()) / 1e9;
  return {.latency = Duration{0},
          .bandwidth = to_bandwidth(message, scale.standing_ends * wire + overhead)};
}

Link make_reduction_link(const SailorPlan& plan, std::size_t stage, const ModelProfile& profile,
                         const BandwidthFit& fit, const SailorLinkScale& scale) {
  Bytes parameters;
  for (const LayerId layer : plan.stages[stage]) {
    parameters += profile.layers[layer.index()].parameters;
  }
  const Bytes share = share_among(parameters, static_cast<std::size_t>(plan.replicas));
  const auto measured = static_cast<double>(bandwidth_at(fit, share).count);
  const double wire = static_cast<double>(share.count) / (measured * scale.reduction);
  return {.latency = Duration{0}, .bandwidth = to_bandwidth(share, wire)};
}

}  // namespace

Plan make_sailor_plan(const SailorPlan& plan, const ModelProfile& profile) {
  Plan made;
  made.model_hash = model_hash(profile);
  made.batch_size = plan.batch_size;
  made.micro_batch_size = plan.micro_batch_size;
  made.mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
  made.schedule = NamedSchedule{.kind = ScheduleKind::kOneForwardOneBackward};
  made.reduction = ReductionMode::kFast;
  const int own = plan.micro_batches_per_replica();
  for (int replica = 0; replica < plan.replicas; ++replica) {
    Pipeline pipeline;
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
      const std::vector<LayerId>& layers = plan.stages[stage];
      Stage each;
      each.layers = {{layers.front(), layers.back()}};
      each.devices = {device_at(plan, replica, stage)};
      pipeline.stages.push_back(std::move(each));
    }
    pipeline.micro_batches = {{MicroBatchId{replica * own}, MicroBatchId{(replica + 1) * own - 1}}};
    made.pipelines.push_back(std::move(pipeline));
  }
  made.provenance["source"] = "Sailor plan " + plan.name;
  return made;
}

Cluster make_sailor_cluster(const SailorPlan& plan, const ModelProfile& profile,
                            const SailorLinks& links, const SailorLinkScale& scale) {
  const BandwidthFit& fit = find_fit(links);
  Cluster cluster;
  for (int replica = 0; replica < plan.replicas; ++replica) {
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
      const std::string place = fmt::format("replica {} stage {}", replica, stage);
      Device device;
      device.name = place;
      device.host = HostId{cluster.hosts.size()};
      device.memory_limit = Bytes{kLargestQuantity};
      cluster.hosts.push_back({.name = "node of " + place, .memory = Bytes{0}});
      cluster.devices.push_back(std::move(device));
    }
  }
  const auto connect = [&](DeviceId from, DeviceId to, const Link& link) {
    cluster.links.push_back({from, to, link});
  };
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (stage + 1 < plan.stages.size()) {
      const Link link = make_boundary_link(find_message(plan, stage, profile), fit, scale);
      for (int replica = 0; replica < plan.replicas; ++replica) {
        const DeviceId here = device_at(plan, replica, stage);
        const DeviceId next = device_at(plan, replica, stage + 1);
        connect(here, next, link);
        connect(next, here, link);
      }
    }
    if (plan.replicas == 1) continue;
    const Link link = make_reduction_link(plan, stage, profile, fit, scale);
    for (int from = 0; from < plan.replicas; ++from) {
      for (int to = 0; to < plan.replicas; ++to) {
        if (from == to) continue;
        connect(device_at(plan, from, stage), device_at(plan, to, stage), link);
      }
    }
  }
  std::sort(cluster.links.begin(), cluster.links.end(),
            [](const DirectedLink& a, const DirectedLink& b) {
              return std::pair(a.from, a.to) < std::pair(b.from, b.to);
            });
  cluster.provenance["source"] = "Sailor plan " + plan.name + ", fitted bandwidths";
  return cluster;
}

}  // namespace frazil
