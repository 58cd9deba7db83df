#include "exec/profile/replica_plan.h"

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr int kHalves = 2;

Plan begin_plan(const ModelProfile& structure, int devices, int micro_batch_size) {
  Plan plan;
  plan.model_hash = model_hash(structure);
  plan.micro_batch_size = micro_batch_size;
  plan.batch_size = micro_batch_size * kProfiledMicroBatches * devices;
  plan.mask = FreezeMask::all_active(static_cast<int>(structure.blocks.size()));
  return plan;
}

}  // namespace

Plan make_replica_plan(const ModelProfile& structure, int devices, int micro_batch_size) {
  Plan plan = begin_plan(structure, devices, micro_batch_size);
  for (std::int32_t d = 0; d < devices; ++d) {
    const MicroBatches owned{MicroBatchId{d * kProfiledMicroBatches},
                             MicroBatchId{(d + 1) * kProfiledMicroBatches - 1}};
    plan.pipelines.push_back(
        make_pipeline(static_cast<int>(structure.layers.size()), {}, {DeviceId{d}}, owned));
  }
  return plan;
}

Plan make_halves_plan(const ModelProfile& structure, int micro_batch_size) {
  const auto layers = static_cast<std::int32_t>(structure.layers.size());
  ENSURE(layers >= kHalves, "a layer for each half");
  Plan plan = begin_plan(structure, kHalves, micro_batch_size);
  const MicroBatches all{MicroBatchId{0}, MicroBatchId{kHalves * kProfiledMicroBatches - 1}};
  plan.pipelines.push_back(
      make_pipeline(layers, {LayerId{layers / kHalves}}, {DeviceId{0}, DeviceId{1}}, all));
  return plan;
}

}  // namespace frazil
