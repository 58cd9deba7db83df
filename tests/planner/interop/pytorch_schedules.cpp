#include "tests/planner/interop/pytorch_schedules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "planner/actions/deadlock.h"
#include "planner/schedules/make_schedule.h"

namespace frazil {

WhatIfInputs make_inputs(ScheduleKind kind, int stages, int micro_batches,
                         std::optional<int> chunks) {
  WhatIf what_if;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.schedule = kind;
  what_if.chunks = chunks;
  what_if.forward = {std::chrono::milliseconds{2}};
  what_if.backward_input = {std::chrono::milliseconds{3}};
  what_if.backward_weight = {std::chrono::milliseconds{1}};
  what_if.hop = std::chrono::milliseconds{1};
  return make_what_if(what_if);
}

Schedule compute_of(const WhatIfInputs& inputs) {
  const Setting setting{inputs.profile, inputs.cluster};
  return make_schedule(inputs.plan, static_cast<int>(inputs.cluster.devices.size()), setting);
}

Schedule completed_of(const WhatIfInputs& inputs) {
  return complete_schedule(compute_of(inputs), inputs.plan, inputs.profile,
                           find_activity(inputs.profile, inputs.plan.mask));
}

std::string only_csv(const Schedule& schedule, PytorchDialect dialect) {
  const std::vector<std::string> texts = to_pytorch_csv(schedule, dialect);
  EXPECT_EQ(texts.size(), 1U);
  return texts.at(0);
}

bool run_in_lockstep(const Schedule& schedule) {
  return !find_deadlock(schedule, MessageLowering::kJustInTime);
}

bool is_expressible(const ScheduleFacts& facts) {
  return directions(facts.placement) == 1 && facts.versions == WeightVersions::kSync &&
         facts.kind != ScheduleKind::kVaruna;
}

void for_each_expressible(
    const std::function<void(const WhatIfInputs&, const ScheduleFacts&)>& visit) {
  for (const ScheduleFacts& facts : all_schedules()) {
    if (!is_expressible(facts)) continue;
    std::vector<int> chunks{facts.chunks};
    if (facts.legal != ScheduleFacts::Chunks::kFixed) chunks.push_back(4);
    for (const int v : chunks) {
      for (const auto& [p, m] : {std::pair{1, 2}, {2, 4}, {3, 6}, {4, 8}, {4, 12}}) {
        SCOPED_TRACE(fmt::format("{} p {} v {} m {}", schedule_name(facts.kind), p, v, m));
        visit(make_inputs(facts.kind, p, m, v), facts);
      }
    }
  }
}

}  // namespace frazil
