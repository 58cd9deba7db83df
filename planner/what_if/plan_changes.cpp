#include "planner/what_if/plan_changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Makes all stages but the last recompute, as Varuna's schedule always does; other schedules do
// where a plan asks for it.
void recompute_as_varuna(Plan& plan) {
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) stage.memory = MemoryPolicy::kRecompute;
    pipeline.stages.back().memory = MemoryPolicy::kKeep;
  }
}

// Returns the most stages that a pipeline has on one device.
int count_chunks(const Plan& plan) {
  int most = 1;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      const auto same =
          std::count_if(pipeline.stages.begin(), pipeline.stages.end(),
                        [&](const Stage& other) { return other.devices == stage.devices; });
      most = std::max(most, static_cast<int>(same));
    }
  }
  return most;
}

}  // namespace

Plan with_schedule(Plan plan, NamedSchedule schedule) {
  // Most schedules take the stages of a device as its chunks.
  schedule.chunks = facts_of(schedule.kind).takes_any_placement ? 1 : count_chunks(plan);
  plan.schedule = schedule;
  plan.versions = facts_of(schedule.kind).versions;
  if (facts_of(schedule.kind).recomputes_itself) recompute_as_varuna(plan);
  return plan;
}

Plan with_schedule(Plan plan, DispatchPolicy policy) {
  plan.schedule = policy;
  plan.versions = WeightVersions::kSync;
  return plan;
}

Plan with_lists(Plan plan, Setting setting) {
  const auto* named = std::get_if<NamedSchedule>(&plan.schedule);
  const bool decides = named == nullptr ? std::holds_alternative<DispatchPolicy>(plan.schedule)
                                        : facts_of(named->kind).needs_costs;
  if (!decides) return plan;
  const auto devices = static_cast<int>(setting.cluster().devices.size());
  plan.schedule = ExplicitSchedule{make_schedule(plan, devices, setting).devices};
  return plan;
}

Plan with_micro_batches(Plan plan, int micro_batches) {
  const int before = plan.micro_batches();
  plan.micro_batch_size = divide_up(plan.batch_size, micro_batches);
  if (plan.micro_batches() != micro_batches) {
    throw InfeasibleError(fmt::format(
        "a batch of {} cannot be cut into {} micro-batches of one size with a shorter last one; {} "
        "would be {} of {}",
        plan.batch_size, micro_batches, plan.micro_batch_size, plan.micro_batches(),
        plan.micro_batch_size));
  }
  const auto scaled = [&](int position) {
    return static_cast<int>(std::int64_t{position} * micro_batches / before);
  };
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    std::vector<MicroBatches> owned;
    for (const MicroBatches& interval : plan.pipelines[p].micro_batches) {
      const int first = scaled(interval.first.value);
      const int end = scaled(interval.last.value + 1);
      if (first < end) owned.push_back({MicroBatchId{first}, MicroBatchId{end - 1}});
    }
    if (owned.empty() && !plan.pipelines[p].micro_batches.empty()) {
      throw InfeasibleError(
          fmt::format("of {} micro-batches none is left for pipeline {}", micro_batches, p));
    }
    plan.pipelines[p].micro_batches = std::move(owned);
  }
  return plan;
}

Plan with_pytorch_schedule(Plan plan, const PytorchSchedule& imported, int devices,
                           const std::string& file) {
  const auto refuse = [&](const std::string& found, const std::string& expected) {
    throw InputError(file, 0, found, expected);
  };
  const PytorchShape& shape = imported.shape;
  if (plan.pipelines.size() != 1) {
    refuse(fmt::format("a schedule for a plan of {} pipelines", plan.pipelines.size()), "one");
  }
  std::vector<Stage>& stages = plan.pipelines.front().stages;
  if (shape.stages != static_cast<int>(stages.size())) {
    refuse(fmt::format("{} stages", shape.stages), fmt::format("the plan's {}", stages.size()));
  }
  if (shape.micro_batches != plan.micro_batches()) {
    refuse(fmt::format("{} micro-batches", shape.micro_batches),
           fmt::format("the plan's {}", plan.micro_batches()));
  }
  if (static_cast<int>(imported.schedule.devices.size()) > devices) {
    refuse(fmt::format("{} ranks", imported.schedule.devices.size()),
           fmt::format("at most the cluster's {} devices", devices));
  }
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s].devices = {shape.rank_of_stage[s]};
  plan.schedule = to_explicit_schedule(imported, devices);
  plan.versions = WeightVersions::kSync;
  return plan;
}

Ranking compare_schedules(const Plan& plan, Setting setting, bool clip) {
  const int chunks = count_chunks(plan);
  Ranking ranking;
  for (const ScheduleFacts& facts : all_schedules()) {
    if (facts.versions != WeightVersions::kSync) continue;
    if (chunks == 1 && facts.legal != ScheduleFacts::Chunks::kFixed) continue;
    ranking.candidates.push_back(
        judge_plan(with_schedule(plan, {.kind = facts.kind}), setting, clip));
  }
  rank(ranking.candidates);
  return ranking;
}

}  // namespace frazil
