#include "tests/bench/support/bench_run.h"

#include <numeric>

#include "planner/plan/schedule_facts.h"
#include "planner/verbs/flags.h"
#include "planner/what_if/plan_changes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

// Makes one pipeline of one replica; a schedule that runs both ways has two per replica.
Pipeline make_direction(const ModelProfile& structure, const BenchPlan& shape, int index) {
  const Placement placement = facts_of(shape.schedule).placement;
  const int ways = directions(placement);
  const int first_device = index / ways * shape.devices;
  const int blocks = static_cast<int>(structure.blocks.size()) - 2;
  std::vector<LayerId> cuts;
  std::vector<DeviceId> devices;
  for (int stage = 0; stage < shape.stages(); ++stage) {
    // Layer 0 is the embedding; each block then has two layers.
    if (stage > 0) cuts.emplace_back(1 + 2 * (blocks * stage / shape.stages()));
    devices.emplace_back(first_device +
                         device_of_stage(placement, shape.devices, index % ways, stage));
  }
  const int share = shape.micro_batches / shape.pipelines();
  return make_pipeline(static_cast<int>(structure.layers.size()), cuts, devices,
                       {MicroBatchId{index * share}, MicroBatchId{(index + 1) * share - 1}});
}

}  // namespace

ModelProfile with_even_times(ModelProfile profile, int micro_batch_size) {
  for (Layer& layer : profile.layers) {
    layer.costs = {{.micro_batch_size = micro_batch_size,
                    .forward = microseconds(100),
                    .forward_frozen = microseconds(100),
                    .backward_input = microseconds(100),
                    .backward_weight = microseconds(100),
                    .backward_weight_alone = microseconds(100),
                    .stash = {}}};
  }
  return profile;
}

int BenchPlan::stages() const { return devices * facts_of(schedule).chunks; }

int BenchPlan::pipelines() const { return replicas * directions(facts_of(schedule).placement); }

BenchModel find_bench_model(const std::string& name) {
  VitConfig config{
      .image = 32, .channels = 3, .patch = 4, .dim = 192, .blocks = 12, .heads = 3, .classes = 10};
  if (name == "tiny") return {.name = name, .config = config, .batch_size = 64};
  if (name == "base") {
    return {.name = name,
            .config = {.image = 32,
                       .channels = 3,
                       .patch = 16,
                       .dim = 768,
                       .blocks = 12,
                       .heads = 12,
                       .classes = 1000},
            .batch_size = 8};
  }
  if (name == "vit-b16") {
    return {.name = name,
            .config = {.image = 224,
                       .channels = 3,
                       .patch = 16,
                       .dim = 768,
                       .blocks = 12,
                       .heads = 12,
                       .classes = 1000},
            .batch_size = 64};
  }
  if (name == "bert-large") {
    return {.name = name,
            .config = {.image = 352,
                       .channels = 3,
                       .patch = 16,
                       .dim = 1024,
                       .blocks = 24,
                       .heads = 16,
                       .classes = 2},
            .batch_size = 16};
  }
  if (name != "wide") {
    refuse_flags("--model " + name, "tiny, wide, base, vit-b16 or bert-large");
  }
  config.dim = 384;
  config.blocks = 8;
  config.heads = 6;
  return {.name = name, .config = config, .batch_size = 32};
}

OptimizerConfig momentum_sgd() {
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerConfig::Kind::kSgd;
  optimizer.learning_rate = 0.01;
  optimizer.momentum = 0.9;
  optimizer.weight_decay = 0;
  return optimizer;
}

Plan make_bench_plan(const ModelProfile& structure, const BenchPlan& shape) {
  ENSURE(shape.batch_size % shape.micro_batches == 0, "micro-batches of equal size");
  ENSURE(shape.micro_batches % shape.pipelines() == 0, "pipelines of equal shares");
  Plan plan;
  plan.model_hash = model_hash(structure);
  plan.batch_size = shape.batch_size;
  plan.micro_batch_size = shape.batch_size / shape.micro_batches;
  plan.mask = FreezeMask::all_active(static_cast<int>(structure.blocks.size()));
  plan.reduction = shape.reduction;
  for (int index = 0; index < shape.pipelines(); ++index) {
    plan.pipelines.push_back(make_direction(structure, shape, index));
  }
  plan = with_schedule(std::move(plan), {.kind = shape.schedule});
  const Cluster even =
      make_uniform_cluster(shape.devices * shape.replicas, Bytes{kLargestQuantity}, {});
  const ModelProfile timed = with_even_times(structure, plan.micro_batch_size);
  return with_lists(plan, {timed, even});
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
