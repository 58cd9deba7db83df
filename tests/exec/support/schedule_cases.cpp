#include "tests/exec/support/schedule_cases.h"

#include "planner/plan/schedule_facts.h"

namespace frazil {

TrainedVit make_trained_vit(int index) {
  TrainedVit vit;
  vit.optimizer.learning_rate = 1e-2;
  vit.optimizer.warm_up_steps = 2;
  if (index % kTrainedVits == 0) {
    vit.model.dropout = 0.1;
    vit.optimizer.clip_norm = 0.5;
  } else {
    vit.optimizer.kind = OptimizerConfig::Kind::kSgd;
    vit.optimizer.momentum = 0.9;
  }
  return vit;
}

ModelProfile structure_of(const TrainedVit& vit) {
  return make_structure(make_vit(vit.model), optimizer_bytes_per_parameter_byte(vit.optimizer));
}

std::vector<FamilyForm> list_forms(int devices, const std::vector<int>& micro_batches) {
  std::vector<FamilyForm> forms;
  for (const ScheduleFacts& facts : all_schedules()) {
    if (facts.versions != WeightVersions::kSync) continue;
    for (const int chunks : chunks_of(facts)) {
      if (devices * chunks > kSmallLayers) continue;
      for (const int count : micro_batches) forms.push_back({facts.kind, devices, chunks, count});
    }
  }
  return forms;
}

std::vector<std::string> list_masks() {
  std::vector<std::string> masks = {"01111", "00111", "00011", "00001"};
  for (int b = 1; b < 16; ++b) {
    std::string mask;
    for (int bit = 0; bit < 4; ++bit) mask += ((b >> bit) & 1) != 0 ? '1' : '0';
    mask += "1";
    if (mask.find("10") != std::string::npos) masks.push_back(mask);
  }
  return masks;
}

std::uint64_t OneDevice::hash(int vit, int micro_batches, const std::string& mask) {
  const auto [known, added] = hashes_.try_emplace({vit, micro_batches, mask}, 0);
  if (added) {
    const TrainedVit made = make_trained_vit(vit);
    Run run(make_vit(made.model), made.optimizer, 7, 1);
    const Plan plan = make_small_plan(
        run.structure(), {.micro_batches = micro_batches, .owned = {micro_batches}, .mask = mask});
    known->second = train_two_steps(run, made, plan, micro_batches);
  }
  return known->second;
}

}  // namespace frazil
