#include "planner/what_if/plan_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "planner/plan/gradient_waits.h"
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

namespace {

// Returns the devices that ranks may take: the plan's, in the order of its stages, which is the
// order in which an export numbers ranks, then the others.
std::vector<DeviceId> list_places(const std::vector<Stage>& stages, int devices) {
  std::vector<DeviceId> places;
  const auto add = [&](DeviceId device) {
    if (std::find(places.begin(), places.end(), device) == places.end()) places.push_back(device);
  };
  for (const Stage& stage : stages) {
    for (const DeviceId device : stage.devices) add(device);
  }
  for (int d = 0; d < devices; ++d) add(DeviceId{d});
  return places;
}

// Returns the device of each rank: that on which the plan has the rank's stages, where all ranks
// have one of their own; else the ranks take the plan's devices in turn.
std::vector<DeviceId> place_ranks(const std::vector<Stage>& stages, std::size_t ranks,
                                  const PytorchShape& shape, int devices) {
  std::vector<std::optional<DeviceId>> of_rank(ranks);
  bool is_same = true;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    std::optional<DeviceId>& device = of_rank[shape.rank_of_stage[s].index()];
    is_same = is_same && device.value_or(stages[s].devices.front()) == stages[s].devices.front();
    device = stages[s].devices.front();
  }
  const std::set<std::optional<DeviceId>> taken(of_rank.begin(), of_rank.end());
  std::vector<DeviceId> places = list_places(stages, devices);
  places.resize(ranks);
  if (!is_same || taken.size() < ranks) return places;
  std::transform(of_rank.begin(), of_rank.end(), places.begin(),
                 [](const std::optional<DeviceId>& device) { return *device; });
  return places;
}

// True if the first stage has an I of its own, whose inputs need no gradient.
bool lists_first_input(const Schedule& rows) {
  return std::any_of(rows.devices.begin(), rows.devices.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](const Action& action) {
      const auto parts = parts_of(action);
      return std::any_of(parts.begin(), parts.end(), [](const Action& part) {
        return part.kind == ActionKind::kBackwardInput && part.stage == StageId{0};
      });
    });
  });
}

}  // namespace

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
  const std::vector<DeviceId> device_of_rank =
      place_ranks(stages, imported.schedule.devices.size(), shape, devices);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].devices = {device_of_rank[shape.rank_of_stage[s].index()]};
  }
  plan.schedule = to_explicit_schedule(imported, device_of_rank, devices);
  if (lists_first_input(imported.schedule)) set_gradient_waits(plan);
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
