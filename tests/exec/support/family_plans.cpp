#include "tests/exec/support/family_plans.h"

#include "planner/plan/placement.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/plan_changes.h"
#include "profiles/error.h"

namespace frazil {

using std::chrono::microseconds;

std::string name_of(const FamilyForm& form) {
  return std::string(schedule_name(form.kind)) + " on " + std::to_string(form.devices) +
         " devices, chunks " + std::to_string(form.chunks) + ", " +
         std::to_string(form.micro_batches) + " micro-batches, mask " + form.mask;
}

std::vector<int> chunks_of(const ScheduleFacts& facts) {
  if (facts.legal == ScheduleFacts::Chunks::kFixed) return {facts.chunks};
  return {2, 4};
}

ModelProfile with_times(ModelProfile profile) {
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    CostSample cost;
    cost.micro_batch_size = kSmallMicroBatch;
    cost.forward = microseconds(100 + 10 * static_cast<int>(l));
    cost.forward_frozen = cost.forward;
    cost.backward_input = cost.forward + microseconds(7);
    cost.backward_weight = cost.forward - microseconds(30);
    cost.backward_weight_alone = cost.backward_input + cost.backward_weight;
    profile.layers[l].costs = {cost};
    profile.layers[l].update = microseconds(5);
  }
  return profile;
}

Cluster make_family_cluster(int devices, BytesPerSecond bandwidth) {
  return make_uniform_cluster(devices, Bytes{1 << 30}, {microseconds(5), bandwidth});
}

OptimizerConfig make_family_optimizer(bool clip) {
  OptimizerConfig optimizer;
  optimizer.clip_norm = clip ? 0.5 : 0;
  return optimizer;
}

Plan place_family(const FamilyForm& form, const ModelProfile& structure) {
  const ScheduleFacts& facts = facts_of(form.kind);
  const int stages = form.devices * form.chunks;
  const int ways = directions(facts.placement);
  if (form.micro_batches % ways != 0) throw InfeasibleError("micro-batches for both ways");
  Plan plan = make_small_plan(
      structure,
      {.micro_batches = form.micro_batches, .owned = {form.micro_batches}, .mask = form.mask});
  plan.pipelines.clear();
  for (int direction = 0; direction < ways; ++direction) {
    std::vector<LayerId> cuts;
    std::vector<DeviceId> devices;
    for (int s = 0; s < stages; ++s) {
      if (s > 0) cuts.emplace_back(s * kSmallLayers / stages);
      devices.emplace_back(device_of_stage(facts.placement, form.devices, direction, s));
    }
    const int share = form.micro_batches / ways;
    plan.pipelines.push_back(make_pipeline(
        kSmallLayers, cuts, devices,
        {MicroBatchId{direction * share}, MicroBatchId{(direction + 1) * share - 1}}));
  }
  plan = with_schedule(plan, {.kind = form.kind, .chunks = form.chunks});
  const Cluster cluster = make_family_cluster(form.devices);
  const ModelProfile profile = with_times(structure);
  const Setting setting{profile, cluster};
  (void)make_schedule(plan, form.devices, setting);
  return with_lists(plan, setting);
}

}  // namespace frazil
