#include "planner/bounds.h"

#include <algorithm>
#include <limits>

#include "planner/stage_work.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

// Times of the stages and boundaries of one pipeline for one micro-batch.
struct MicroBatchTimes {
  std::vector<Duration> forward;   // by stage
  std::vector<Duration> backward;  // zero where a stage has none
  std::vector<Duration> down;      // by boundary: transfer and latency of the activations
  std::vector<Duration> up;        // of the gradients
};

// What one micro-batch alone has to wait for, by stage.
struct Path {
  std::vector<Duration> head;            // before its F
  std::vector<Duration> after_forward;   // after its F
  std::vector<Duration> after_backward;  // after its B
};

class Pricing {
 public:
  Pricing(const Plan& plan, const ModelProfile& profile, const Cluster& cluster)
      : profile_(profile), cluster_(cluster), activity_(find_activity(profile, plan.mask)) {}

  const Activity& activity() const { return activity_; }

  Duration compute(const StageEntry& stage, ActionKind kind, int samples) const {
    const auto parts = find_stage_parts(*stage.stage, kind, activity_);
    if (parts.empty() && kind != ActionKind::kForward) return Duration{0};
    return price(Compute{stage.device, samples, parts}, profile_, cluster_);
  }
  Duration crossing(DeviceId from, DeviceId to, Bytes size) const {
    if (from == to) return Duration{0};
    const Link link = cluster_.link(from, to);
    return size / link.bandwidth + link.latency;
  }
  Duration overhead(DeviceId device) const {
    return cluster_.devices.at(device.index()).step_overhead;
  }

  MicroBatchTimes times(const PipelineTable& pipeline, int samples) const {
    MicroBatchTimes times;
    for (const StageEntry& stage : pipeline.stages) {
      times.forward.push_back(compute(stage, ActionKind::kForward, samples));
      times.backward.push_back(compute(stage, ActionKind::kBackward, samples));
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
      const Duration update = compute(stage, ActionKind::kUpdate, 1);
      path.head.push_back(overhead(stage.device));
      path.after_backward.push_back(stage.has_backward ? update : Duration{0});
    }
    relax(pipeline, [&](const StageBoundary& boundary, std::size_t b) {
      const auto [from, to] = std::pair(boundary.from.index(), boundary.to.index());
      bool grew = grow(path.head[to], path.head[from] + times.forward[from] + times.down[b]);
      if (boundary.carries) {
        grew |= grow(path.after_backward[to],
                     times.up[b] + times.backward[from] + path.after_backward[from]);
      }
      return grew;
    });
    for (std::size_t s = 0; s < stages; ++s) {
      path.after_forward.push_back(pipeline.stages[s].has_backward
                                       ? times.backward[s] + path.after_backward[s]
                                       : Duration{0});
    }
    relax(pipeline, [&](const StageBoundary& boundary, std::size_t b) {
      const auto [from, to] = std::pair(boundary.from.index(), boundary.to.index());
      return grow(path.after_forward[from],
                  times.down[b] + times.forward[to] + path.after_forward[to]);
    });
    return path;
  }

 private:
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
};

// What is known of one device, over all pipelines that use it.
struct DeviceLoad {
  Duration earliest = Duration::max();  // no F before this
  Duration least_after = Duration::max();
  Duration work{0};
  Duration update{0};
};

struct SizeCount {
  int samples = 1;
  int count = 0;
};

// The sizes of the micro-batches a pipeline owns.
std::vector<SizeCount> count_sizes(const Plan& plan, const Pipeline& pipeline) {
  const MicroBatchId last{plan.micro_batches() - 1};
  SizeCount whole{plan.micro_batch_size, 0};
  SizeCount rest{samples_in(plan, last), 0};
  for (const MicroBatches& interval : pipeline.micro_batches) {
    const bool has_last = interval.last == last;
    whole.count += interval.count() - (has_last ? 1 : 0);
    rest.count += has_last ? 1 : 0;
  }
  std::vector<SizeCount> sizes;
  for (const SizeCount& size : {whole, rest}) {
    if (size.count > 0) sizes.push_back(size);
  }
  return sizes;
}

// One micro-batch of any size the pipeline has: each device's first may be its cheapest.
Path least_path(const std::vector<Path>& paths) {
  Path least = paths.front();
  const auto lower_to = [](std::vector<Duration>& values, const std::vector<Duration>& others) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::min(values[i], others[i]);
  };
  for (const Path& path : paths) {
    lower_to(least.head, path.head);
    lower_to(least.after_forward, path.after_forward);
    lower_to(least.after_backward, path.after_backward);
  }
  return least;
}

}  // namespace

PlanBounds find_bounds(const Plan& plan, const ModelProfile& profile, const Cluster& cluster) {
  const Pricing pricing(plan, profile, cluster);
  const std::vector<PipelineTable> table = make_stage_table(plan, profile, pricing.activity());
  std::vector<DeviceLoad> loads(cluster.devices.size());
  Duration one_micro_batch{0};
  for (std::size_t p = 0; p < table.size(); ++p) {
    const std::vector<StageEntry>& stages = table[p].stages;
    std::vector<Path> paths;
    for (const SizeCount& size : count_sizes(plan, plan.pipelines[p])) {
      const MicroBatchTimes times = pricing.times(table[p], size.samples);
      paths.push_back(pricing.find_path(table[p], times));
      for (std::size_t s = 0; s < stages.size(); ++s) {
        loads[stages[s].device.index()].work += (times.forward[s] + times.backward[s]) * size.count;
        one_micro_batch = std::max(one_micro_batch, paths.back().head[s] + times.forward[s] +
                                                        paths.back().after_forward[s]);
      }
    }
    for (std::size_t s = 0; s < stages.size(); ++s) {
      loads[stages[s].device.index()].update += pricing.compute(stages[s], ActionKind::kUpdate, 1);
    }
    if (paths.empty()) continue;
    const Path least = least_path(paths);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      DeviceLoad& load = loads[stages[s].device.index()];
      load.earliest = std::min(load.earliest, least.head[s]);
      load.least_after =
          std::min(load.least_after,
                   stages[s].has_backward ? least.after_backward[s] : least.after_forward[s]);
    }
  }

  PlanBounds bounds{{Duration{0}, "busiest-device"}, {Duration{0}, "busiest-device"}};
  for (std::size_t d = 0; d < loads.size(); ++d) {
    const DeviceLoad& load = loads[d];
    if (load.earliest == Duration::max()) continue;
    bounds.makespan.time = std::max(
        bounds.makespan.time, load.earliest + load.work + std::max(load.update, load.least_after));
    bounds.span.time =
        std::max(bounds.span.time, load.work + load.update + pricing.overhead(DeviceId{d}));
  }
  if (one_micro_batch > bounds.makespan.time) {
    bounds.makespan = {one_micro_batch, "one-micro-batch"};
  }
  return bounds;
}

}  // namespace frazil
