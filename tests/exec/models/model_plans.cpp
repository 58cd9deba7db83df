#include "tests/exec/models/model_plans.h"

#include "exec/state/optimizer.h"
#include "planner/plan/placement.h"
#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/plan_changes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr std::uint64_t kPlansSeed = 7;
constexpr int kMicroBatchSize = 3;

std::vector<LayerId> cut_layers(const PlanForm& form, int layers) {
  std::vector<LayerId> cuts;
  for (const int cut : form.cuts) cuts.emplace_back(cut);
  if (!cuts.empty()) return cuts;
  const int stages = form.devices * form.chunks;
  if (stages > layers) throw InfeasibleError("more stages than layers");
  for (int s = 1; s < stages; ++s) cuts.emplace_back(s * layers / stages);
  return cuts;
}

// Adds one replica's pipelines, one per direction, on devices from `device` on.
void add_replica(const PlanForm& form, int layers, int device, MicroBatches owned, Plan& plan) {
  const ScheduleFacts& facts = facts_of(form.schedule);
  const int ways = directions(facts.placement);
  if (owned.count() % ways != 0) throw InfeasibleError("micro-batches for both ways");
  const std::vector<LayerId> cuts = cut_layers(form, layers);
  const int share = owned.count() / ways;
  for (int direction = 0; direction < ways; ++direction) {
    std::vector<DeviceId> devices;
    for (std::size_t s = 0; s <= cuts.size(); ++s) {
      const int place =
          device_of_stage(facts.placement, form.devices, direction, static_cast<int>(s));
      devices.emplace_back(device + place);
    }
    const int first = owned.first.value + direction * share;
    Pipeline pipeline = make_pipeline(layers, cuts, devices,
                                      {MicroBatchId{first}, MicroBatchId{first + share - 1}});
    if (form.recompute) {
      for (Stage& stage : pipeline.stages) stage.memory = MemoryPolicy::kRecompute;
    }
    plan.pipelines.push_back(std::move(pipeline));
  }
}

}  // namespace

std::string name_of(const PlanForm& form) {
  std::string name = std::string(schedule_name(form.schedule)) + " on " +
                     std::to_string(form.devices) + " devices x " + std::to_string(form.replicas) +
                     ", chunks " + std::to_string(form.chunks) + ", " +
                     std::to_string(form.micro_batches) + " micro-batches, mask " + form.mask +
                     (form.recompute ? ", recomputing" : "") + ", cuts";
  for (const int cut : form.cuts) name += " " + std::to_string(cut);
  if (form.shared_stage >= 0) name += ", stage " + std::to_string(form.shared_stage) + " shared";
  if (form.order == MessageOrder::kAsSent) name += ", messages as sent";
  return name;
}

Plan make_plan(const TestModel& model, const PlanForm& form) {
  const ModelProfile profile = make_timed_structure(model.spec);
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.micro_batch_size = kMicroBatchSize;
  plan.batch_size = kMicroBatchSize * form.micro_batches;
  plan.mask = FreezeMask::parse(form.mask.empty() ? model.mask : form.mask, "test", 0);
  for (int r = 0; r < form.replicas; ++r) {
    const int first = r * form.micro_batches / form.replicas;
    const int end = (r + 1) * form.micro_batches / form.replicas;
    add_replica(form, model.layers(), r * form.devices,
                {MicroBatchId{first}, MicroBatchId{end - 1}}, plan);
  }
  if (form.shared_stage >= 0) {
    plan.pipelines.front()
        .stages.at(static_cast<std::size_t>(form.shared_stage))
        .devices.emplace_back(form.all_devices() - 1);
  }
  plan.schedule = NamedSchedule{.kind = form.schedule, .chunks = form.chunks};
  const Cluster cluster = make_linked_cluster(form.all_devices());
  const Setting setting{profile, cluster};
  (void)make_schedule(plan, form.all_devices(), setting);
  return with_lists(plan, setting);
}

ModelProfile make_timed_structure(const ModelSpec& model) {
  ModelProfile profile = make_structure(model, 2);
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    CostSample cost;
    cost.micro_batch_size = kMicroBatchSize;
    cost.forward = microseconds(100 + 10 * static_cast<int>(l));
    cost.forward_frozen = cost.forward;
    cost.backward_input = cost.forward + microseconds(7);
    cost.backward_weight = cost.forward - microseconds(30);
    cost.backward_weight_alone = cost.backward_input + cost.backward_weight;
    profile.layers[l].costs = {cost};
  }
  return profile;
}

Cluster make_linked_cluster(int devices) {
  return make_uniform_cluster(devices, Bytes{1 << 30},
                              {microseconds(5), BytesPerSecond{1'000'000'000}});
}

OptimizerConfig clipped_adamw() {
  OptimizerConfig optimizer;
  optimizer.clip_norm = 0.5;
  return optimizer;
}

OptimizerConfig momentum_sgd() {
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerConfig::Kind::kSgd;
  optimizer.momentum = 0.9;
  optimizer.weight_decay = 0;  // so that the momentum holds the gradient's own bits
  return optimizer;
}

std::uint64_t train_two_steps(const TestModel& model, OptimizerConfig optimizer,
                              const PlanForm& form, const Measurement& measurement) {
  optimizer.learning_rate = 1e-2;
  optimizer.warm_up_steps = 2;
  Run run(model.spec, optimizer, kPlansSeed, form.all_devices(), {.order = form.order});
  run.measure(measurement);
  run.transition_to(make_plan(model, form));
  const int fewer = form.micro_batches - (form.micro_batches == 8 ? 1 : 0);
  run.step(0, learning_rate(optimizer, 0, 6),
           model.samples({.seed = 1, .micro_batches = form.micro_batches}));
  run.step(4, learning_rate(optimizer, 4, 6),
           model.samples({.seed = 2, .micro_batches = fewer, .last_short_by = 1}));
  return run.weight_hash();
}

}  // namespace frazil
