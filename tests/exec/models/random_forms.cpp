#include "tests/exec/models/random_forms.h"

#include <algorithm>
#include <utility>

#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"

namespace frazil {
namespace {

bool is_legal(const TestModel& model, const PlanForm& form) {
  try {
    make_plan(model, form);
    return true;
  } catch (const InfeasibleError&) {
    return false;
  }
}

}  // namespace

std::vector<TestModel> models_with_gaps() {
  return {encoder_model(), uneven_mlp_model(), small_cnn_model(), small_vgg_model(),
          distillation_model()};
}

std::string random_mask(const TestModel& model, std::mt19937& random) {
  std::string mask = model.mask;
  for (std::size_t b = 0; b + 1 < mask.size(); ++b) {
    if (random() % 2 == 0) mask[b] = '0';
  }
  return mask;
}

std::string RandomForms::mask(const TestModel& model) {
  while (true) {
    std::string mask = model.mask;
    for (std::size_t b = 0; b + 1 < mask.size(); ++b) {
      if (mask[b] == '1' && draw(2) == 0) mask[b] = '0';
    }
    const std::size_t active = mask.find('1');
    if (mask != model.mask && mask.find('0', active) != std::string::npos) return mask;
  }
}

PlanForm RandomForms::form(const TestModel& model, const std::string& mask) {
  while (true) {
    const ScheduleFacts& facts =
        all_schedules()[static_cast<std::size_t>(draw(static_cast<int>(all_schedules().size())))];
    if (facts.versions != WeightVersions::kSync || facts.kind == ScheduleKind::kVaruna) {
      continue;
    }
    PlanForm form{.schedule = facts.kind,
                  .devices = 2 + draw(3),
                  .chunks = facts.chunks,
                  .micro_batches = 5 + draw(2),
                  .mask = mask,
                  .recompute = draw(4) == 0,
                  .order = draw(2) == 0 ? MessageOrder::kByTag : MessageOrder::kAsSent};
    if (form.devices == 2 && draw(2) == 0) form.replicas = 2;
    form.cuts = cuts(form.devices * form.chunks, model.layers());
    if (is_legal(model, form)) return form;
  }
}

std::vector<int> RandomForms::cuts(int stages, int layers) {
  if (stages > layers) return {};
  std::vector<int> all;
  for (int l = 1; l < layers; ++l) all.push_back(l);
  for (std::size_t left = all.size(); left > 1; --left) {
    std::swap(all[left - 1], all[static_cast<std::size_t>(draw(static_cast<int>(left)))]);
  }
  all.resize(static_cast<std::size_t>(stages - 1));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace frazil
