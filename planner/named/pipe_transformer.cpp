#include "planner/named/pipe_transformer.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::int64_t kBytesPerParameter = 4;

using HostDevices = std::vector<std::vector<DeviceId>>;

// Lists the devices by host; hosts without devices are left out.
HostDevices list_devices(const Cluster& cluster) {
  HostDevices devices(cluster.hosts.size());
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    devices.at(cluster.devices[d].host.index()).emplace_back(d);
  }
  devices.erase(std::remove_if(devices.begin(), devices.end(),
                               [](const auto& of_host) { return of_host.empty(); }),
                devices.end());
  return devices;
}

// Returns the number of devices of each host. Throws InfeasibleError where hosts have unequal
// numbers, or a number that is no power of two.
int find_first_length(const HostDevices& devices) {
  const std::size_t length = devices.front().size();
  for (const auto& of_host : devices) {
    if (of_host.size() == length) continue;
    throw InfeasibleError(
        fmt::format("pipetransformer needs as many devices on every host, not {} and {}", length,
                    of_host.size()));
  }
  if ((length & (length - 1)) != 0) {
    throw InfeasibleError(fmt::format(
        "pipetransformer halves its pipeline: a host needs a power of two of devices, not {}",
        length));
  }
  return static_cast<int>(length);
}

int limit_pipelines(int per_host, const HostDevices& hosts, const PipeTransformerOptions& options) {
  if (options.max_pipelines == 0) return per_host;
  const int of_host = options.max_pipelines / static_cast<int>(hosts.size());
  if (of_host > 0) return std::min(per_host, of_host);
  throw InfeasibleError(
      fmt::format("pipetransformer has a pipeline on each of {} hosts, and at most {} "
                  "may be",
                  hosts.size(), options.max_pipelines));
}

LayerId find_first_active(const ModelProfile& profile, const FreezeMask& mask) {
  int first = 0;
  while (first < mask.blocks() && mask.is_frozen(BlockId{first})) ++first;
  if (first != mask.frozen_count()) {
    throw InfeasibleError(
        fmt::format("pipetransformer freezes a prefix of the blocks, not {}", mask.text()));
  }
  std::size_t layer = 0;
  while (layer < profile.layers.size() && profile.layers[layer].block < BlockId{first}) ++layer;
  return LayerId{layer};
}

// Returns the frozen stage, if there is one, and the stages of the other layers on `devices`.
std::vector<Stage> make_stages(const ModelProfile& profile, const FreezeMask& mask,
                               const std::vector<DeviceId>& devices) {
  const LayerId first = find_first_active(profile, mask);
  const auto counts =
      balance_greedily(find_active_parameters(profile, mask), static_cast<int>(devices.size()));
  std::vector<Stage> stages;
  const auto add = [&](LayerId begin, int count, DeviceId device) {
    if (count == 0) return;
    stages.push_back({.layers = {{begin, LayerId{begin.value + count - 1}}}, .devices = {device}});
  };
  add(LayerId{0}, first.value, devices.front());
  LayerId next = first;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    add(next, counts[s], devices[s]);
    next.value += counts[s];
  }
  return stages;
}

}  // namespace

std::vector<std::int64_t> find_active_parameters(const ModelProfile& profile,
                                                 const FreezeMask& mask) {
  std::vector<std::int64_t> active;
  for (std::size_t l = find_first_active(profile, mask).index(); l < profile.layers.size(); ++l) {
    active.push_back(profile.layers[l].trainable().count / kBytesPerParameter);
  }
  return active;
}

Plan make_pipe_transformer_plan(Setting setting, const PipeTransformerShape& shape) {
  const HostDevices hosts = list_devices(setting.cluster());
  const int replicas = static_cast<int>(hosts.size()) * shape.pipelines_per_host;
  Plan plan;
  plan.model_hash = model_hash(setting.profile());
  plan.batch_size = shape.batch_size;
  plan.micro_batch_size = shape.micro_batch_size.value_or(
      divide_up(divide_up(shape.batch_size, replicas), shape.micro_batches));
  plan.mask = shape.mask;
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  plan.reduction = ReductionMode::kFast;
  if (plan.micro_batches() < replicas) {
    throw InfeasibleError(fmt::format("pipetransformer has {} pipelines for {} micro-batches",
                                      replicas, plan.micro_batches()));
  }
  int first = 0;
  for (int r = 0; r < replicas; ++r) {
    const auto& host = hosts[static_cast<std::size_t>(r / shape.pipelines_per_host)];
    const auto begin = host.begin() + r % shape.pipelines_per_host * shape.length;
    const int end = plan.micro_batches() * (r + 1) / replicas;
    plan.pipelines.push_back(
        {.stages = make_stages(setting.profile(), shape.mask, {begin, begin + shape.length}),
         .micro_batches = {{MicroBatchId{first}, MicroBatchId{end - 1}}}});
    first = end;
  }
  return plan;
}

Plan plan_pipe_transformer(Setting setting, const PipeTransformerOptions& options) {
  const ModelProfile& profile = setting.profile();
  const HostDevices hosts = list_devices(setting.cluster());
  const int first_length = find_first_length(hosts);
  const auto all = FreezeMask::all_active(options.mask.blocks());
  const std::int64_t reference =
      options.reference.value_or(largest_stage(find_active_parameters(profile, all), first_length));
  const int length = compress_length(find_active_parameters(profile, options.mask), first_length,
                                     reference, options.rule);
  const int pipelines_per_host = limit_pipelines(first_length / length, hosts, options);
  return make_pipe_transformer_plan(
      setting, {.length = length,
                .pipelines_per_host = pipelines_per_host,
                .batch_size = options.batch_size * (options.batch_grows ? pipelines_per_host : 1),
                .micro_batches = count_micro_batches(length),
                .mask = options.mask,
                .micro_batch_size = options.micro_batch_size});
}

}  // namespace frazil
