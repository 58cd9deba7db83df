#include "planner/search/shared_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/partition/replica_levels.h"
#include "planner/partition/replicated_partition.h"
#include "planner/plan/schedule_facts.h"

namespace frazil {
namespace {

Plan make_empty_plan(const SearchOptions& options, int size, const NamedSchedule& schedule) {
  Plan plan;
  plan.batch_size = options.batch_size;
  plan.micro_batch_size = size;
  plan.mask = options.mask;
  plan.reduction = options.reduction;
  plan.schedule = schedule;
  plan.pipelines.resize(1);
  plan.pipelines.front().micro_batches = {
      {MicroBatchId{0}, MicroBatchId{plan.micro_batches() - 1}}};
  return plan;
}

// Adds the plans in which one thing is changed.
class Neighbours {
 public:
  Neighbours(const SharedPlan& plan, const SharedLimits& limits) : plan_(plan), limits_(limits) {}

  void change_schedule() {
    for (const ScheduleKind kind : limits_.schedules) {
      if (kind == plan_.schedule) continue;
      SharedPlan next = plan_;
      next.schedule = kind;
      next.in_flight = std::nullopt;
      add(std::move(next));
    }
  }

  void change_depth() {
    if (!facts_of(plan_.schedule).takes_in_flight) return;
    const int own = divide_up(count_devices(plan_.layout), plan_.layout.devices.front());
    for (const int by : {1, 2, -1}) {
      const int depth = plan_.in_flight.value_or(own) + by;
      if (depth < 1) continue;
      SharedPlan next = plan_;
      next.in_flight = depth;
      add(std::move(next));
    }
  }

  void move_cuts() {
    for (std::size_t cut = 0; cut < plan_.layout.cuts.size(); ++cut) {
      const LayerSpan before = span_of(plan_.layout, cut, limits_.layers);
      const LayerSpan behind = span_of(plan_.layout, cut + 1, limits_.layers);
      for (const int by : {-1, 1, -3, 3}) {
        const int moved = plan_.layout.cuts[cut] + by;
        if (moved <= before.first || moved >= behind.end) continue;
        SharedPlan next = plan_;
        next.layout.cuts[cut] = moved;
        add(std::move(next));
      }
    }
  }

  void move_devices() {
    const std::size_t stages = plan_.layout.devices.size();
    const bool has_idle = count_devices(plan_.layout) < limits_.devices;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      for (std::size_t to = 0; to < stages; ++to) {
        if (stage != to) move_device(stage, to);
      }
      if (has_idle) move_device(std::nullopt, stage);
      move_device(stage, std::nullopt);
    }
  }

  std::vector<SharedPlan> take() { return std::move(plans_); }

 private:
  // None stands for the idle devices.
  void move_device(std::optional<std::size_t> from, std::optional<std::size_t> to) {
    if (from && plan_.layout.devices[*from] == 1) return;
    if (to && plan_.layout.devices[*to] >= limits_.most_copies) return;
    SharedPlan next = plan_;
    if (from) --next.layout.devices[*from];
    if (to) ++next.layout.devices[*to];
    add(std::move(next));
  }

  void add(SharedPlan plan) {
    if (has_shared_stage(plan.layout)) plans_.push_back(std::move(plan));
  }

  const SharedPlan& plan_;
  const SharedLimits& limits_;
  std::vector<SharedPlan> plans_;
};

}  // namespace

LayerSpan span_of(const SharedCuts& layout, std::size_t stage, int layers) {
  const std::vector<int>& cuts = layout.cuts;
  return {stage == 0 ? 0 : cuts[stage - 1], stage < cuts.size() ? cuts[stage] : layers};
}

int count_devices(const SharedCuts& layout) {
  return std::accumulate(layout.devices.begin(), layout.devices.end(), 0);
}

bool has_shared_stage(const SharedCuts& layout) {
  return std::any_of(layout.devices.begin(), layout.devices.end(), [](int own) { return own > 1; });
}

Plan make_plan(const SharedPlan& shared, const SearchOptions& options, int layers) {
  Plan plan =
      make_empty_plan(options, shared.micro_batch_size,
                      {.kind = shared.schedule, .in_flight = shared.in_flight, .chunks = 1});
  int used = 0;
  for (std::size_t s = 0; s < shared.layout.devices.size(); ++s) {
    const LayerSpan span = span_of(shared.layout, s, layers);
    Stage stage;
    stage.layers = {{LayerId{span.first}, LayerId{span.end - 1}}};
    for (int d = 0; d < shared.layout.devices[s]; ++d) stage.devices.emplace_back(used++);
    if (shared.recompute) stage.memory = MemoryPolicy::kRecompute;
    plan.pipelines.front().stages.push_back(std::move(stage));
  }
  return plan;
}

std::optional<SharedPlan> read_shared_plan(const Plan& plan, const SearchOptions& options,
                                           int layers) {
  SharedPlan shared;
  shared.micro_batch_size = plan.micro_batch_size;
  const NamedSchedule& schedule = std::get<NamedSchedule>(plan.schedule);
  shared.schedule = schedule.kind;
  shared.in_flight = schedule.in_flight;
  for (const Stage& stage : plan.pipelines.front().stages) {
    const int first = stage.layers.front().first.value;
    if (!shared.layout.devices.empty()) shared.layout.cuts.push_back(first);
    shared.layout.devices.push_back(static_cast<int>(stage.devices.size()));
    shared.recompute = stage.memory == MemoryPolicy::kRecompute;
  }
  for (std::size_t s = 0; s < shared.layout.devices.size(); ++s) {
    const LayerSpan span = span_of(shared.layout, s, layers);
    if (span.first >= span.end) return std::nullopt;
  }
  if (make_plan(shared, options, layers).pipelines != plan.pipelines) return std::nullopt;
  return shared;
}

std::vector<SharedPlan> list_neighbours(const SharedPlan& plan, const SharedLimits& limits) {
  Neighbours neighbours(plan, limits);
  neighbours.change_schedule();
  neighbours.move_devices();
  neighbours.move_cuts();
  neighbours.change_depth();
  return neighbours.take();
}

Plan make_partition_plan(Setting setting, const SearchOptions& options,
                         const PartitionQuestion& question) {
  const ModelProfile& profile = setting.profile();
  ReplicaOptions asked;
  asked.levels = question.levels;
  asked.micro_batch_size = question.micro_batch_size;
  asked.ideals = profile.layers.size() + 1;
  const ReplicatedPartition partition = partition_replicated(profile, asked);
  std::vector<std::vector<int>> replicas;
  std::vector<const ReplicatedStage*> stages;
  for (const ReplicatedStage& outer : partition.stages) {
    if (outer.inner.empty()) {
      replicas.push_back({outer.machines});
      stages.push_back(&outer);
    }
    for (const ReplicatedStage& inner : outer.inner) {
      replicas.push_back({inner.machines, outer.machines});
      stages.push_back(&inner);
    }
  }
  const auto devices = place_replicas(replicas, question.levels.front().machines);
  Plan plan = make_empty_plan(options, question.micro_batch_size,
                              {.kind = question.schedule, .in_flight = std::nullopt, .chunks = 1});
  for (std::size_t s = 0; s < stages.size(); ++s) {
    plan.pipelines.front().stages.push_back(make_replicated_stage(stages[s]->layers, devices[s]));
  }
  return plan;
}

}  // namespace frazil
