#include "planner/searched_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "planner/linear_bounds.h"
#include "planner/micro_batch_paths.h"
#include "planner/pipeline_group.h"
#include "planner/schedule_menu.h"
#include "profiles/error.h"

namespace frazil {
namespace {

void refuse_what_is_not_searched(const Plan& plan) {
  if (plan.pipelines.size() != 1) {
    throw InfeasibleError(
        fmt::format("the order of one pipeline is searched, not of {}", plan.pipelines.size()));
  }
  for (const Stage& stage : plan.pipelines.front().stages) {
    if (stage.memory == MemoryPolicy::kKeep) continue;
    throw InfeasibleError("the order is searched of stages that keep what their backward needs");
  }
}

LinearPipeline read_pipeline(const Plan& plan, const NamedSchedule& named,
                             const ModelProfile& profile, const Cluster& cluster) {
  const MicroBatchPricing pricing(plan, profile, cluster);
  const PipelineTable stages = make_stage_table(plan, profile, pricing.activity()).front();
  const int micro_batches = plan.micro_batches();
  const std::optional<LinearClass> linear = find_linear_class(named, stages, micro_batches);
  if (!linear || !linear->splits_backward || linear->in_flight.size() != stages.stages.size()) {
    throw InfeasibleError(
        "the order is searched of stages that each split their backward and send a gradient on");
  }
  MicroBatchClass whole = pricing.find_classes(PipelineId{0}, stages).front();
  whole.count = micro_batches;
  return make_linear_pipeline(*linear, whole);
}

ExplicitSchedule name_work(const DeviceOrders& orders, const PipelineGroup& group, int devices) {
  ExplicitSchedule schedule;
  schedule.devices.resize(static_cast<std::size_t>(devices));
  for (std::size_t d = 0; d < orders.size(); ++d) {
    for (const OrderedWork& work : orders[d]) {
      const auto micro_batch = static_cast<std::size_t>(work.micro_batch);
      schedule.devices.at(group.devices[d].index())
          .push_back(make_action(PipelineId{0}, StageId{work.stage}, work.kind,
                                 group.owned.front()[micro_batch]));
    }
  }
  return schedule;
}

std::string describe(const SearchedOrder& found, const NamedSchedule& named,
                     const OrderSearchOptions& options) {
  const LowerBound& bound = found.bound(options.objective);
  return fmt::format(
      "searched for the least {} in the memory of {}: {} moves, seed {}; {} ns, {} "
      "says {} ns at least",
      objective_name(options.objective), schedule_name(named.kind), found.moves_tried, options.seed,
      found.time(options.objective).count(), bound.name, bound.time.count());
}

}  // namespace

SearchedPlan search_order(Plan plan, const ModelProfile& profile, const Cluster& cluster,
                          const OrderSearchOptions& options) {
  const auto* chosen = std::get_if<NamedSchedule>(&plan.schedule);
  ENSURE(chosen != nullptr, "a schedule that says what a stage may hold");
  const NamedSchedule named = *chosen;
  refuse_what_is_not_searched(plan);
  const PipelineGroup group = read_group(plan, PipelineId{0}, family_of(named.kind));
  SearchedOrder found = search_order(read_pipeline(plan, named, profile, cluster), options);
  plan.schedule = name_work(found.orders, group, static_cast<int>(cluster.devices.size()));
  plan.provenance["schedule"] = describe(found, named, options);
  return {std::move(plan), std::move(found)};
}

}  // namespace frazil
