#include "planner/bounds.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "planner/linear_bounds.h"
#include "planner/stage_work.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

constexpr Duration kNone{0};

constexpr std::array kFusedSchedules{ScheduleKind::kGpipe,
                                     ScheduleKind::kOneForwardOneBackward,
                                     ScheduleKind::kEagerOneForwardOneBackward,
                                     ScheduleKind::kInterleaved,
                                     ScheduleKind::kLoopedBfs,
                                     ScheduleKind::kChimera,
                                     ScheduleKind::kBitPipe,
                                     ScheduleKind::kHanayo,
                                     ScheduleKind::kPipeDream,
                                     ScheduleKind::kPipeDream2Bw,
                                     ScheduleKind::kVaruna};

// Whether every backward is a B, or an I that has no W. What is not known to be may be split.
bool is_fused(const ScheduleChoice& schedule) {
  if (const auto* named = std::get_if<NamedSchedule>(&schedule)) {
    return std::count(kFusedSchedules.begin(), kFusedSchedules.end(), named->kind) > 0;
  }
  const auto* given = std::get_if<ExplicitSchedule>(&schedule);
  if (given == nullptr) return false;
  const auto is_weight = [](const Action& action) {
    return action.kind == ActionKind::kBackwardWeight;
  };
  return std::none_of(given->devices.begin(), given->devices.end(), [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), is_weight);
  });
}

// Times of the stages and boundaries of one pipeline for one micro-batch.
struct MicroBatchTimes {
  std::vector<StageTimes> stages;  // zero where a stage has none; B is an input part alone
  std::vector<Duration> recompute;
  std::vector<Duration> down;  // by boundary: transfer and latency of the activations
  std::vector<Duration> up;    // of the gradients
};

// What one micro-batch alone has to wait for, by stage.
struct Path {
  std::vector<Duration> head;           // before its F
  std::vector<Duration> after_forward;  // after its F
  std::vector<Duration> after_input;    // after its I or B
};

class Pricing {
 public:
  Pricing(const Plan& plan, const ModelProfile& profile, const Cluster& cluster)
      : profile_(profile),
        cluster_(cluster),
        activity_(find_activity(profile, plan.mask)),
        fused_(is_fused(plan.schedule)) {}

  const Activity& activity() const { return activity_; }
  bool fused() const { return fused_; }

  Duration update(const StageEntry& stage) const { return compute(stage, ActionKind::kUpdate, 1); }
  Duration overhead(DeviceId device) const {
    return cluster_.devices.at(device.index()).step_overhead;
  }

  MicroBatchTimes times(const PipelineTable& pipeline, int samples) const {
    MicroBatchTimes times;
    for (const StageEntry& stage : pipeline.stages) {
      const bool again = stage.has_backward && stage.stage->memory == MemoryPolicy::kRecompute;
      times.stages.push_back(stage_times(stage, samples));
      times.recompute.push_back(again ? compute(stage, ActionKind::kRecompute, samples) : kNone);
    }
    for (const StageBoundary& boundary : pipeline.boundaries) {
      const DeviceId from = pipeline.stages[boundary.from.index()].device;
      const DeviceId to = pipeline.stages[boundary.to.index()].device;
      times.down.push_back(crossing(from, to, boundary.activation_per_sample * samples));
      times.up.push_back(crossing(to, from, boundary.gradient_per_sample * samples));
    }
    return times;
  }

  // Longest paths over the stages. Stages are nearly always in the order of the data, so that the
  // second round changes nothing; any order ends within as many rounds as there are stages.
  Path find_path(const PipelineTable& pipeline, const MicroBatchTimes& times) const {
    const std::size_t stages = pipeline.stages.size();
    Path path;
    for (std::size_t s = 0; s < stages; ++s) {
      const StageEntry& stage = pipeline.stages[s];
      path.head.push_back(overhead(stage.device));
      path.after_input.push_back(
          stage.has_backward ? times.stages[s].backward_weight + update(stage) : kNone);
    }
    relax(pipeline, [&](const StageBoundary& boundary, std::size_t b) {
      const auto [from, to] = std::pair(boundary.from.index(), boundary.to.index());
      const StageTimes& sender = times.stages[from];
      bool grew = grow(path.head[to], path.head[from] + sender.forward + times.down[b]);
      if (boundary.carries) {
        grew |= grow(path.after_input[to],
                     times.up[b] + sender.backward_input + path.after_input[from]);
      }
      return grew;
    });
    for (std::size_t s = 0; s < stages; ++s) {
      path.after_forward.push_back(pipeline.stages[s].has_backward
                                       ? times.recompute[s] + times.stages[s].backward_input +
                                             path.after_input[s]
                                       : kNone);
    }
    relax(pipeline, [&](const StageBoundary& boundary, std::size_t b) {
      const auto [from, to] = std::pair(boundary.from.index(), boundary.to.index());
      return grow(path.after_forward[from],
                  times.down[b] + times.stages[to].forward + path.after_forward[to]);
    });
    return path;
  }

 private:
  Duration compute(const StageEntry& stage, ActionKind kind, int samples) const {
    const auto parts = find_stage_parts(*stage.stage, kind, activity_);
    if (parts.empty() && kind != ActionKind::kForward) return kNone;
    return price(Compute{stage.device, samples, parts}, profile_, cluster_);
  }

  // What may run as B or as I and W counts as the cheaper: B has the device's overhead once.
  StageTimes stage_times(const StageEntry& stage, int samples) const {
    const auto time = [&](ActionKind kind) { return compute(stage, kind, samples); };
    const Duration fused = time(ActionKind::kBackward);
    if (fused_) return {time(ActionKind::kForward), fused, kNone};
    const Duration input = time(ActionKind::kBackwardInput);
    return {time(ActionKind::kForward), input,
            std::min(time(ActionKind::kBackwardWeight), fused - input)};
  }

  Duration crossing(DeviceId from, DeviceId to, Bytes size) const {
    if (from == to) return kNone;
    const Link link = cluster_.link(from, to);
    return size / link.bandwidth + link.latency;
  }

  static bool grow(Duration& value, Duration candidate) {
    if (candidate <= value) return false;
    value = candidate;
    return true;
  }

  template <class Step>
  static void relax(const PipelineTable& pipeline, Step step) {
    for (bool grew = true; grew;) {
      grew = false;
      for (std::size_t b = 0; b < pipeline.boundaries.size(); ++b) {
        grew |= step(pipeline.boundaries[b], b);
      }
    }
  }

  const ModelProfile& profile_;
  const Cluster& cluster_;
  Activity activity_;
  bool fused_;
};

// The micro-batches of one size that a pipeline owns.
struct SizeClass {
  int count = 0;
  MicroBatchTimes times;
  Path path;
};

std::vector<SizeClass> find_sizes(const Plan& plan, const Pipeline& pipeline,
                                  const PipelineTable& table, const Pricing& pricing) {
  const MicroBatchId last{plan.micro_batches() - 1};
  const int last_size = samples_in(plan, last);
  int whole = 0;
  int rest = 0;
  for (const MicroBatches& interval : pipeline.micro_batches) {
    const bool has_short = interval.last == last && last_size < plan.micro_batch_size;
    whole += interval.count() - (has_short ? 1 : 0);
    rest += has_short ? 1 : 0;
  }
  std::vector<SizeClass> sizes;
  for (const auto& [count, samples] :
       {std::pair(whole, plan.micro_batch_size), std::pair(rest, last_size)}) {
    if (count == 0) continue;
    SizeClass& size = sizes.emplace_back();
    size.count = count;
    size.times = pricing.times(table, samples);
    size.path = pricing.find_path(table, size.times);
  }
  return sizes;
}

// What is known of one device, over all pipelines that use it.
struct DeviceLoad {
  Duration earliest = Duration::max();     // no F before this
  Duration least_after = Duration::max();  // after its last F, R, I or B
  Duration work{0};
  Duration weight{0};  // of work, what W does
  Duration update{0};
};

void raise(LowerBound& bound, Duration time, std::string_view name) {
  if (time > bound.time) bound = {time, std::string(name)};
}

LinearPipeline make_linear_pipeline(const LinearClass& linear, const SizeClass& size) {
  const std::vector<StageTimes>& stages = size.times.stages;
  LinearPipeline pipeline;
  pipeline.micro_batches = size.count;
  pipeline.splits_backward = linear.splits_backward;
  pipeline.in_flight = linear.in_flight;
  pipeline.release = linear.release;
  pipeline.times.assign(stages.end() - static_cast<std::ptrdiff_t>(linear.in_flight.size()),
                        stages.end());
  for (const std::size_t boundary : linear.boundaries) {
    pipeline.down.push_back(size.times.down[boundary]);
    pipeline.up.push_back(size.times.up[boundary]);
  }
  return pipeline;
}

class BoundFinder {
 public:
  BoundFinder(const Plan& plan, const ModelProfile& profile, const Cluster& cluster)
      : plan_(plan),
        pricing_(plan, profile, cluster),
        table_(make_stage_table(plan, profile, pricing_.activity())),
        loads_(cluster.devices.size()) {}

  PlanBounds find() {
    std::vector<std::vector<SizeClass>> sizes;
    for (std::size_t p = 0; p < table_.size(); ++p) {
      sizes.push_back(find_sizes(plan_, plan_.pipelines[p], table_[p], pricing_));
      add_loads(table_[p], sizes.back());
    }
    raise_by_devices();
    for (const std::vector<SizeClass>& of_pipeline : sizes) raise_by_paths(of_pipeline);
    for (std::size_t p = 0; p < table_.size(); ++p) raise_by_linear_bounds(table_[p], sizes[p]);
    return bounds_;
  }

 private:
  void add_loads(const PipelineTable& pipeline, const std::vector<SizeClass>& sizes) {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      DeviceLoad& load = loads_[pipeline.stages[s].device.index()];
      load.update += pricing_.update(pipeline.stages[s]);
      for (const auto& [count, times, path] : sizes) {
        load.work += (times.stages[s].total() + times.recompute[s]) * count;
        load.weight += times.stages[s].backward_weight * count;
        load.earliest = std::min(load.earliest, path.head[s]);
        load.least_after =
            std::min(load.least_after,
                     pipeline.stages[s].has_backward ? path.after_input[s] : path.after_forward[s]);
      }
    }
  }

  void raise_by_devices() {
    const bool fused = pricing_.fused();
    const std::string_view name = fused ? "busiest-device" : "general-floor";
    bounds_ = {{kNone, std::string(name)}, {kNone, std::string(name)}};
    for (std::size_t d = 0; d < loads_.size(); ++d) {
      const DeviceLoad& load = loads_[d];
      if (load.earliest == Duration::max()) continue;
      const Duration after = fused ? std::max(load.update, load.least_after) : load.update;
      raise(bounds_.makespan, load.earliest + load.work + after, name);
      raise(bounds_.span, pricing_.overhead(DeviceId{d}) + load.work + load.update, name);
    }
    if (fused) return;
    for (const DeviceLoad& load : loads_) {
      if (load.earliest == Duration::max()) continue;
      raise(bounds_.makespan, load.earliest + load.work - load.weight + load.least_after,
            "gradient-chain");
    }
  }

  void raise_by_paths(const std::vector<SizeClass>& sizes) {
    for (const auto& [count, times, path] : sizes) {
      for (std::size_t s = 0; s < path.head.size(); ++s) {
        raise(bounds_.makespan, path.head[s] + times.stages[s].forward + path.after_forward[s],
              "one-micro-batch");
      }
    }
  }

  // Micro-batches of one size at a time: if the others were not there, nothing would take longer.
  void raise_by_linear_bounds(const PipelineTable& pipeline, const std::vector<SizeClass>& sizes) {
    const auto* named = std::get_if<NamedSchedule>(&plan_.schedule);
    if (named == nullptr) return;
    int all = 0;
    for (const SizeClass& size : sizes) all += size.count;
    const std::optional<LinearClass> linear = find_linear_class(*named, pipeline, all);
    if (!linear) return;
    for (const SizeClass& size : sizes) {
      const auto bounds = find_linear_bounds(make_linear_pipeline(*linear, size));
      for (const LinearBound& bound : bounds) raise_by(bound, pipeline, size.path);
    }
  }

  void raise_by(const LinearBound& bound, const PipelineTable& pipeline, const Path& path) {
    const std::size_t first = pipeline.stages.size() - bound.span_of_stage.size();
    for (std::size_t s = first; s < pipeline.stages.size(); ++s) {
      const StageEntry& stage = pipeline.stages[s];
      const Duration span = bound.span_of_stage[s - first] + pricing_.update(stage);
      raise(bounds_.makespan, path.head[s] + span, bound.name);
      raise(bounds_.span, pricing_.overhead(stage.device) + span, bound.name);
    }
  }

  const Plan& plan_;
  Pricing pricing_;
  std::vector<PipelineTable> table_;
  std::vector<DeviceLoad> loads_;  // by DeviceId
  PlanBounds bounds_;
};

}  // namespace

PlanBounds find_bounds(const Plan& plan, const ModelProfile& profile, const Cluster& cluster) {
  return BoundFinder(plan, profile, cluster).find();
}

}  // namespace frazil
