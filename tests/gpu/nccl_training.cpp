// Two processes train the small vision transformer of the tests on one GPU: their messages go over
// NCCL as in a program over several hosts, and the bits are those of one process.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "exec/communication/device_communicator.h"
#include "exec/communication/nccl_communicator.h"
#include "exec/devices/compute_device.h"
#include "exec/run/run.h"
#include "tests/exec/support/rank_training.h"
#include "tests/exec/support/small_vit.h"
#include "tests/gpu/nccl_parts.h"
#include "tests/gpu/pair_world.h"

namespace frazil {
namespace {

constexpr int kSteps = 3;
constexpr std::uint64_t kSeed = 7;

using Hashes = std::map<LayerId, std::uint64_t>;

struct Case {
  std::string name;
  std::vector<std::vector<int>> cuts;
  std::vector<int> owned;
};

// Two stages, and two replicas, whose gradients are added in a fixed tree over messages.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{"stages", {{4}}, {6}}, {"replicas", {{}, {}}, {3, 3}}};
  return all;
}

Plan make_case(const ModelProfile& structure, const Case& one) {
  return make_small_plan(structure, {.cuts = one.cuts, .owned = one.owned});
}

OptimizerConfig make_optimizer() {
  OptimizerConfig optimizer;
  optimizer.clip_norm = 0.5;
  return optimizer;
}

Hashes train_here(const Case& one, const DeviceChoice& gpu) {
  Run run(make_vit(small_config()), make_optimizer(), kSeed, 2, {.devices = gpu});
  run.transition_to(make_case(run.structure(), one));
  for (Step step = 0; step < kSteps; ++step) run.step(step, 1e-2, small_micro_batches(step, 6));
  Hashes all;
  for (const DeviceState& state : run.pool().states()) all.merge(RankTraining::hashes_of(state));
  return all;
}

Hashes train_rank(const NcclPair& pair, const Case& one, const ComputeDevices& devices,
                  std::vector<double>& step_ms) {
  const ModelSpec model = make_vit(small_config());
  const OptimizerConfig optimizer = make_optimizer();
  const ModelProfile structure =
      make_structure(model, optimizer_bytes_per_parameter_byte(optimizer));
  const StepProgram program =
      make_program(make_case(structure, one), structure, 2, true, MessageOrder::kAsSent);
  std::vector<std::unique_ptr<Communicator>> own;
  own.push_back(over_nccl(make_pair_world(pair.rank(), pair.socket()),
                          {.table = &pair.table(),
                           .gpu = 0,
                           .place = devices[0].place(),
                           .peers = {},
                           .most_blocks = 2,
                           .waits = {.deadline = std::chrono::seconds(10)}}));
  const auto communicators = on_devices(std::move(own), devices, /*carries_gpu_tensors=*/true);
  const auto& communicator = communicators.front();
  RankTraining training(model, optimizer, kSeed, program, *communicator, devices[0]);
  devices.settle();
  for (Step step = 0; step < kSteps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    (void)training.step(step, 1e-2, small_micro_batches(step, 6));
    step_ms.push_back(since_start(start).count());
  }
  devices[0].finish();
  communicator->barrier();
  return training.hashes();
}

}  // namespace

void train_over_nccl(const NcclPair& pair) {
  const DeviceChoice gpu{.kind = DeviceKind::kCuda, .gpus = {0}, .splits = false, .plugin = {}};
  const ComputeDevices devices(gpu, 1);
  devices[0].enter();
  for (const Case& one : cases()) {
    std::vector<double> step_ms;
    const Hashes own = train_rank(pair, one, devices, step_ms);
    pair.socket().meet();
    if (pair.rank() == 1) {
      pair.socket().put(own.size());
      for (const auto& [layer, hash] : own) {
        pair.socket().put(layer.value);
        pair.socket().put(hash);
      }
      continue;
    }
    Hashes both = own;
    for (auto left = pair.socket().get<std::size_t>(); left > 0; --left) {
      const LayerId layer{pair.socket().get<decltype(LayerId::value)>()};
      both[layer] = pair.socket().get<std::uint64_t>();
    }
    const bool same = both == train_here(one, gpu);
    print_line(pair, "training",
               "\"case\":\"" + one.name + "\",\"same_bits\":" + (same ? "true" : "false") +
                   ",\"first_step_ms\":" + std::to_string(step_ms.front()) +
                   ",\"last_step_ms\":" + std::to_string(step_ms.back()));
    if (!same) throw std::runtime_error("wrong: two processes have other bits than one");
  }
}

}  // namespace frazil
