#include "tests/bench/bench_run.h"

#include <numeric>

#include "profiles/error.h"

namespace frazil {

Plan make_bench_plan(const ModelSpec& model, const ModelProfile& structure,
                     const BenchPlan& shape) {
  ENSURE(shape.batch_size % shape.micro_batches == 0, "micro-batches of equal size");
  Plan plan;
  plan.model_hash = model_hash(structure);
  plan.batch_size = shape.batch_size;
  plan.micro_batch_size = shape.batch_size / shape.micro_batches;
  plan.mask = FreezeMask::parse(std::string(model.blocks.size(), '1'), "benchmark", 0);
  plan.schedule = NamedSchedule{.kind = shape.schedule, .in_flight = {}};
  std::vector<LayerId> cuts;
  std::vector<DeviceId> devices{DeviceId{0}};
  for (int stage = 1; stage < shape.stages; ++stage) {
    const int blocks_before = model.config.blocks * stage / shape.stages;
    cuts.emplace_back(1 + 2 * blocks_before);  // the embedding, then two layers a block
    devices.emplace_back(stage);
  }
  plan.pipelines.push_back(make_pipeline(static_cast<int>(model.layers.size()), cuts, devices,
                                         {MicroBatchId{0}, MicroBatchId{shape.micro_batches - 1}}));
  return plan;
}

std::vector<std::vector<Samples>> make_batches(const VitConfig& model, const BenchPlan& shape,
                                               int steps, std::uint64_t seed) {
  const Dataset data =
      make_synthetic(steps * shape.batch_size, 1, model.channels, model.image, model.classes, seed);
  std::vector<std::int64_t> order(static_cast<std::size_t>(data.train.count()));
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<Samples>> batches;
  for (int step = 0; step < steps; ++step) {
    batches.push_back(
        gather_micro_batches(data.train, order, static_cast<std::int64_t>(step) * shape.batch_size,
                             shape.batch_size, shape.batch_size / shape.micro_batches));
  }
  return batches;
}

}  // namespace frazil
