#include "tests/exec/support/small_vit.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace frazil {

VitConfig small_config() {
  VitConfig config;
  config.dim = 32;
  config.blocks = 3;
  config.heads = 4;
  return config;
}

std::vector<Samples> small_micro_batches(Step step, int micro_batches, int short_by) {
  at::Generator generator =
      at::make_generator<at::CPUGeneratorImpl>(1000 + static_cast<std::uint64_t>(step));
  std::vector<Samples> samples;
  for (int m = 0; m < micro_batches; ++m) {
    const at::Tensor images = at::empty({kSmallMicroBatch, 1, 8, 8}).normal_(0, 1, generator);
    const at::Tensor labels = at::empty({kSmallMicroBatch}, at::kLong).random_(0, 10, generator);
    samples.push_back({{images}, labels});
  }
  if (short_by > 0) {
    samples.back() = narrow(samples.back(), 0, kSmallMicroBatch - short_by);
  }
  return samples;
}

Plan make_small_plan(const ModelProfile& structure, const PlanShape& shape) {
  Plan plan;
  plan.model_hash = model_hash(structure);
  plan.micro_batch_size = kSmallMicroBatch;
  plan.batch_size = kSmallMicroBatch * shape.micro_batches;
  plan.mask = FreezeMask::parse(shape.mask, "test", 0);
  plan.schedule = NamedSchedule{.kind = shape.schedule, .in_flight = {}};
  std::int32_t device = 0;
  std::int32_t first = 0;
  for (std::size_t p = 0; p < shape.cuts.size(); ++p) {
    std::vector<LayerId> cuts;
    std::vector<DeviceId> devices{DeviceId{device++}};
    for (const int cut : shape.cuts[p]) {
      cuts.emplace_back(cut);
      devices.emplace_back(device++);
    }
    const std::int32_t end = first + shape.owned[p];
    plan.pipelines.push_back(
        make_pipeline(kSmallLayers, cuts, devices, {MicroBatchId{first}, MicroBatchId{end - 1}}));
    if (shape.owned[p] == 0) plan.pipelines.back().micro_batches.clear();
    first = end;
  }
  return plan;
}

int devices_of(const PlanShape& shape) {
  std::size_t devices = 0;
  for (const std::vector<int>& cuts : shape.cuts) devices += cuts.size() + 1;
  return static_cast<int>(devices);
}

}  // namespace frazil
