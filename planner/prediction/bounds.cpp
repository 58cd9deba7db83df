#include "planner/prediction/bounds.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "planner/lowering/stage_work.h"
#include "planner/plan/commit_round.h"
#include "planner/prediction/linear_bounds.h"
#include "planner/prediction/micro_batch_paths.h"

namespace frazil {
namespace {

// The load of one device, over all pipelines that use it.
struct DeviceLoad {
  Duration earliest = kNever;     // no F before this
  Duration least_after = kNever;  // after its last F, R, I or B
  Duration work{0};
  Duration weight{0};  // the W part of `work`
  Duration update{0};
};

void raise(LowerBound& bound, Duration time, std::string_view name) {
  if (time > bound.time) bound = {time, std::string(name)};
}

class BoundFinder {
 public:
  BoundFinder(const Plan& plan, Setting setting)
      : plan_(plan),
        pricing_(plan, setting),
        table_(make_stage_table(plan, setting.profile(), pricing_.activity())),
        loads_(setting.cluster().devices.size()),
        commit_round_(find_commit_round(plan, setting.cluster()).value_or(Duration{0})) {}

  PlanBounds find() {
    std::vector<std::vector<MicroBatchClass>> classes;
    for (std::size_t p = 0; p < table_.size(); ++p) {
      classes.push_back(pricing_.find_classes(PipelineId{p}, table_[p]));
      add_loads(table_[p], classes.back());
    }
    raise_by_devices();
    for (const std::vector<MicroBatchClass>& of_pipeline : classes) raise_by_paths(of_pipeline);
    for (std::size_t p = 0; p < table_.size(); ++p) {
      if (has_shared_stage(plan_.pipelines[p])) continue;
      raise_by_linear_bounds(table_[p], classes[p]);
    }
    if (has_update()) bounds_.makespan.time += commit_round_;
    return bounds_;
  }

 private:
  void add_loads(const PipelineTable& pipeline, const std::vector<MicroBatchClass>& classes) {
    for (const StageEntry& stage : pipeline.stages) {
      for (const DeviceId device : stage.stage->devices) {
        loads_[device.index()].update += pricing_.update(stage, device);
      }
    }
    for (const auto& [count, parts, crossings, times, path] : classes) {
      for (std::size_t p = 0; p < parts.size(); ++p) {
        DeviceLoad& load = loads_[parts[p].device.index()];
        load.work += (times.parts[p].total() + times.recompute[p]) * count;
        load.weight += times.parts[p].backward_weight * count;
        load.earliest = std::min(load.earliest, path.head[p]);
        const bool has_backward = pipeline.stages[parts[p].stage.index()].has_backward;
        load.least_after =
            std::min(load.least_after, has_backward ? path.after_input[p] : path.after_forward[p]);
      }
    }
  }

  bool has_update() const {
    const std::vector<LayerActivity>& layers = pricing_.activity().layers;
    return std::any_of(layers.begin(), layers.end(),
                       [](const LayerActivity& layer) { return layer.weight_gradient; });
  }

  void raise_by_devices() {
    const bool fused = pricing_.fused();
    const std::string_view name = fused ? "busiest-device" : "general-floor";
    bounds_ = {{kNoTime, std::string(name)}, {kNoTime, std::string(name)}};
    for (std::size_t d = 0; d < loads_.size(); ++d) {
      const DeviceLoad& load = loads_[d];
      if (load.earliest == kNever) continue;
      const Duration after = fused ? std::max(load.update, load.least_after) : load.update;
      raise(bounds_.makespan, load.earliest + load.work + after, name);
      raise(bounds_.span, pricing_.overhead(DeviceId{d}) + load.work + load.update, name);
    }
    if (fused) return;
    for (const DeviceLoad& load : loads_) {
      if (load.earliest == kNever) continue;
      raise(bounds_.makespan, load.earliest + load.work - load.weight + load.least_after,
            "gradient-chain");
    }
  }

  void raise_by_paths(const std::vector<MicroBatchClass>& classes) {
    for (const auto& [count, parts, crossings, times, path] : classes) {
      for (std::size_t p = 0; p < parts.size(); ++p) {
        raise(bounds_.makespan, path.head[p] + times.parts[p].forward + path.after_forward[p],
              "one-micro-batch");
      }
    }
  }

  // Bounds a step by its micro-batches of one size alone: without the micro-batches of another size
  // nothing would take longer.
  void raise_by_linear_bounds(const PipelineTable& pipeline,
                              const std::vector<MicroBatchClass>& sizes) {
    const auto* named = std::get_if<NamedSchedule>(&plan_.schedule);
    if (named == nullptr) return;
    int all = 0;
    for (const MicroBatchClass& size : sizes) all += size.count;
    const std::optional<LinearClass> linear = find_linear_class(*named, pipeline, all);
    if (!linear) return;
    for (const MicroBatchClass& size : sizes) {
      const auto bounds = find_linear_bounds(make_linear_pipeline(*linear, size));
      for (const LinearBound& bound : bounds) raise_by(bound, pipeline, size);
    }
  }

  void raise_by(const LinearBound& bound, const PipelineTable& pipeline,
                const MicroBatchClass& size) {
    const std::size_t first = pipeline.stages.size() - bound.span_of_stage.size();
    for (std::size_t s = first; s < pipeline.stages.size(); ++s) {
      const DeviceId device = size.parts[s].device;
      const Duration span =
          bound.span_of_stage[s - first] + pricing_.update(pipeline.stages[s], device);
      raise(bounds_.makespan, size.path.head[s] + span, bound.name);
      raise(bounds_.span, pricing_.overhead(device) + span, bound.name);
    }
  }

  const Plan& plan_;
  MicroBatchPricing pricing_;
  std::vector<PipelineTable> table_;
  std::vector<DeviceLoad> loads_;  // by DeviceId
  Duration commit_round_{0};
  PlanBounds bounds_;
};

}  // namespace

PlanBounds find_bounds(const Plan& plan, Setting setting) {
  return BoundFinder(plan, setting).find();
}

}  // namespace frazil
