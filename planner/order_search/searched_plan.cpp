#include "planner/order_search/searched_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/plan/schedule_facts.h"
#include "planner/prediction/linear_bounds.h"
#include "planner/prediction/micro_batch_paths.h"
#include "planner/schedules/pipeline_group.h"
#include "profiles/error.h"

namespace frazil {
namespace {

void refuse_what_is_not_searched(const Plan& plan) {
  std::map<DeviceId, const Pipeline*> taken;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      if (stage.devices.size() == 1 &&
          std::count_if(pipeline.stages.begin(), pipeline.stages.end(),
                        [&](const Stage& other) { return other.devices == stage.devices; }) > 1) {
        throw InfeasibleError(
            "the order is searched of stages that each have a device of their own");
      }
      if (stage.memory != MemoryPolicy::kKeep) {
        throw InfeasibleError(
            "the order is searched of stages that keep what their backward needs");
      }
      for (const DeviceId device : stage.devices) {
        if (taken.try_emplace(device, &pipeline).first->second == &pipeline) continue;
        throw InfeasibleError("the order is searched of pipelines that share no device");
      }
    }
  }
}

LinearPipeline read_pipeline(const NamedSchedule& named, PipelineId id, const PipelineTable& stages,
                             int micro_batches, const MicroBatchPricing& pricing) {
  const std::optional<LinearClass> linear = find_linear_class(named, stages, micro_batches);
  if (!linear || !linear->splits_backward || linear->in_flight.size() != stages.stages.size()) {
    throw InfeasibleError(
        "the order is searched of stages that each split their backward and send a gradient on");
  }
  MicroBatchClass whole = pricing.find_classes(id, stages).front();
  whole.count = micro_batches;
  LinearPipeline found = make_linear_pipeline(*linear, whole);
  // A step frees what a micro-batch keeps at its W, and no half of it at I.
  found.release = ActivationRelease::kAllAtWeight;
  return found;
}

bool are_equal(const LinearPipeline& a, const LinearPipeline& b) {
  return a.times == b.times && a.down == b.down && a.up == b.up &&
         a.micro_batches == b.micro_batches && a.in_flight == b.in_flight &&
         a.splits_backward == b.splits_backward && a.release == b.release;
}

void name_work(const DeviceOrders& orders, const PipelineGroup& group, ExplicitSchedule& schedule) {
  for (std::size_t d = 0; d < orders.size(); ++d) {
    for (const OrderedWork& work : orders[d]) {
      const auto micro_batch = static_cast<std::size_t>(work.micro_batch);
      schedule.devices.at(group.devices[d].index())
          .push_back(make_action(group.first, StageId{work.stage}, work.kind,
                                 group.owned.front()[micro_batch]));
    }
  }
}

std::string describe(const std::vector<SearchedOrder>& all, const NamedSchedule& named,
                     const OrderSearchOptions& options) {
  const SearchedOrder& found = *std::max_element(
      all.begin(), all.end(), [&](const SearchedOrder& a, const SearchedOrder& b) {
        return a.time(options.objective) < b.time(options.objective);
      });
  const LowerBound& bound = found.bound(options.objective);
  return fmt::format("{}{} in the memory of {}: {} moves, seed {}; {} ns, {} says {} ns at least",
                     kSearched, objective_name(options.objective), schedule_name(named.kind),
                     found.moves_tried, options.seed, found.time(options.objective).count(),
                     bound.name, bound.time.count());
}

}  // namespace

SearchedPlan search_order(Plan plan, Setting setting, const OrderSearchOptions& options) {
  const auto* chosen = std::get_if<NamedSchedule>(&plan.schedule);
  ENSURE(chosen != nullptr, "a schedule that says what a stage may hold");
  const NamedSchedule named = *chosen;
  refuse_what_is_not_searched(plan);
  const MicroBatchPricing pricing(plan, setting);
  const std::vector<PipelineTable> table =
      make_stage_table(plan, setting.profile(), pricing.activity());
  std::vector<LinearPipeline> pipelines;
  std::vector<SearchedOrder> found;
  ExplicitSchedule schedule;
  schedule.devices.resize(setting.cluster().devices.size());
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const PipelineGroup group = read_group(plan, PipelineId{p}, facts_of(named.kind));
    const auto micro_batches = static_cast<int>(group.owned.front().size());
    LinearPipeline own = read_pipeline(named, PipelineId{p}, table[p], micro_batches, pricing);
    const auto equal =
        std::find_if(pipelines.begin(), pipelines.end(),
                     [&](const LinearPipeline& other) { return are_equal(own, other); });
    found.push_back(
        equal == pipelines.end()
            ? search_order(own, options)
            : SearchedOrder(found[static_cast<std::size_t>(equal - pipelines.begin())]));
    pipelines.push_back(std::move(own));
    name_work(found.back().orders, group, schedule);
  }
  plan.schedule = std::move(schedule);
  plan.provenance["schedule"] = describe(found, named, options);
  return {std::move(plan), std::move(found)};
}

}  // namespace frazil
